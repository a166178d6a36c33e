// A real HTTP server that plays a model server from a script: what it answers, when, and how it breaks.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface UpstreamRequest {
  path: string;
  headers: IncomingMessage["headers"];
  /** The body in the form in which it arrived. */
  text: string;
  body: Record<string, unknown>;
  /** Set when the gateway hung up before the answer was complete. */
  abandoned: boolean;
}

export type Script = (request: UpstreamRequest, response: ServerResponse) => void | Promise<void>;

export interface ScriptedUpstream {
  /** Base URL, ends in `/v1`. */
  url: string;
  requests: UpstreamRequest[];
  /** Replaces how POSTs are answered. */
  script(script: Script): void;
  /** Paths, such as `/v1/responses`, that it says it has when it is asked which formats it speaks. None at first. */
  speaks(...paths: readonly string[]): void;
  /** Replaces the entries of GET /v1/models. */
  serves(models: readonly Record<string, unknown>[]): void;
  [Symbol.asyncDispose](): Promise<void>;
}

export const defaultModel = { id: "upstream-model", object: "model", created: 1_700_000_000, owned_by: "scripted" };

export async function startUpstream(initial: Script = chatScript()): Promise<ScriptedUpstream> {
  let script = initial;
  let models: readonly Record<string, unknown>[] = [defaultModel];
  let spoken: readonly string[] = [];
  const requests: UpstreamRequest[] = [];
  const server = createServer(async (req, res) => {
    if (req.method === "GET") {
      json(res, 200, { object: "list", data: models });
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    if (isLook(text)) {
      json(res, spoken.includes(req.url ?? "") ? 400 : 404, { error: { message: "that is no request" } });
      return;
    }
    const request = { path: req.url ?? "", headers: req.headers, text, body: JSON.parse(text), abandoned: false };
    requests.push(request);
    res.on("close", () => {
      request.abandoned = !res.writableFinished;
    });
    res.on("error", () => {});
    await script(request, res);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    script: (next) => {
      script = next;
    },
    speaks: (...paths) => {
      spoken = paths;
    },
    serves: (next) => {
      models = next;
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Whether a body is none that a client sends: the gateway looks with it for the formats that a server speaks. */
export function isLook(text: string): boolean {
  return text === '{"input":false}' || text === '{"messages":false}';
}

export function json(res: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}): void {
  res.writeHead(status, { "content-type": "application/json", ...headers });
  res.end(JSON.stringify(body));
}

export function chunk(
  delta: Record<string, unknown>,
  finish: string | null = null,
  more: Record<string, unknown> = {},
): string {
  return `data: ${JSON.stringify({
    id: "chatcmpl-up",
    object: "chat.completion.chunk",
    created: 1_700_000_001,
    model: "upstream-model",
    choices: [{ index: 0, delta, finish_reason: finish }],
    ...more,
  })}\n\n`;
}

export const usage = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 };

/** A well-behaved server: honours `stream` and `stream_options.include_usage`. */
export function chatScript(words: readonly string[] = ["Hello", " world"]): Script {
  return (request, res) => {
    if (request.body["stream"] !== true) {
      json(res, 200, {
        id: "chatcmpl-up",
        object: "chat.completion",
        created: 1_700_000_001,
        model: "upstream-model",
        choices: [{ index: 0, message: { role: "assistant", content: words.join("") }, finish_reason: "stop" }],
        usage,
      });
      return;
    }
    res.writeHead(200, { "content-type": "text/event-stream" });
    res.write(chunk({ role: "assistant", content: "" }));
    for (const word of words) res.write(chunk({ content: word }));
    res.write(chunk({}, "stop"));
    const options = request.body["stream_options"] as { include_usage?: boolean } | undefined;
    if (options?.include_usage) {
      const head = {
        id: "chatcmpl-up",
        object: "chat.completion.chunk",
        created: 1_700_000_001,
        model: "upstream-model",
      };
      res.write(`data: ${JSON.stringify({ ...head, choices: [], usage })}\n\n`);
    }
    res.end("data: [DONE]\n\n");
  };
}

/** Configuration that serves this upstream under the name `up`. */
export function upstreamYaml(upstream: ScriptedUpstream, more = ""): string {
  return `upstreams:\n  - { name: up, url: "${upstream.url}", api_key: sk-upstream-secret-0123456789 }\n${more}`;
}
