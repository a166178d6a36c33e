// Stands between a client and the gateway, passes every byte on, and keeps what the client asked a model in its own words.
import { createServer, request as send } from "node:http";
import type { AddressInfo } from "node:net";
import { type Api, apiOf, type Body } from "./asked.ts";

export interface Tapped {
  api: Api;
  body: Body;
  /** By which the gateway has it in its ledger. */
  requestId: string;
}

export interface Tap {
  /** Without `/v1`. */
  url: string;
  /** What was answered with 200, in the order of the answers. */
  tapped: Tapped[];
  [Symbol.asyncDispose](): Promise<void>;
}

export async function startTap(gateway: string): Promise<Tap> {
  const tapped: Tapped[] = [];
  const server = createServer((req, res) => {
    const chunks: Buffer[] = [];
    const { method, headers } = req;
    const onward = send(new URL(req.url ?? "", gateway), { method, headers }, (answer) => {
      const api = apiOf(req.url ?? "");
      if (method === "POST" && api && answer.statusCode === 200) {
        const body = JSON.parse(Buffer.concat(chunks).toString()) as Body;
        tapped.push({ api, body, requestId: String(answer.headers["x-request-id"]) });
      }
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    onward.on("error", () => res.destroy());
    res.on("close", () => onward.destroy());
    req.on("data", (chunk: Buffer) => chunks.push(chunk));
    req.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tapped,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
