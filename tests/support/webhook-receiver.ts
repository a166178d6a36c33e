// A receiver of webhooks that answers as a test says, and keeps what it got.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";

export interface ReceivedWebhook {
  id: string;
  headers: Record<string, string>;
  text: string;
  body: { type: string; timestamp: string; data: Record<string, unknown> };
}

export interface WebhookReceiver {
  url: string;
  received: ReceivedWebhook[];
  /** How it answers from now on; 200 at first. Undefined: not at all. */
  answer(status: number | undefined, headers?: Record<string, string>): void;
  /** Whether the library of Standard Webhooks takes it. `atSeconds`: the receiver's clock. */
  verifies(webhook: ReceivedWebhook, secret: string): boolean;
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = [];
  let status: number | undefined = 200;
  let headers: Record<string, string> = {};
  const server = createServer(async (req: IncomingMessage, res: ServerResponse) => {
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const got = req.headers as Record<string, string>;
    received.push({ id: got["webhook-id"] ?? "", headers: got, text, body: JSON.parse(text) });
    if (status !== undefined) res.writeHead(status, headers).end("a secret of the inside");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/in`,
    received,
    answer(next, more = {}) {
      status = next;
      headers = more;
    },
    verifies({ text, headers: got }, secret) {
      try {
        // The signature alone: a test's clock is moved, and the library has no other than the system's.
        const at = new Date(Number(got["webhook-timestamp"]) * 1000);
        const signature = new Webhook(secret).sign(got["webhook-id"] ?? "", at, text);
        return (got["webhook-signature"] ?? "").split(" ").includes(signature);
      } catch {
        return false;
      }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
