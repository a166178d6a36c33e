// A gateway before a model server that answers every operation, and a way to send it one changed parameter.
import { expect } from "bun:test";
import { chatRequest } from "../../src/wire/chat.ts";
import { completionRequest } from "../../src/wire/completion.ts";
import { embeddingRequest } from "../../src/wire/embedding.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

type Body = Record<string, unknown>;

/** A request that is served, for each operation. */
export const operations = {
  "/v1/chat/completions": {
    schema: chatRequest,
    body: { model: "upstream-model", messages: [{ role: "user", content: "Hi" }] } as Body,
  },
  "/v1/completions": { schema: completionRequest, body: { model: "upstream-model", prompt: "Hi" } as Body },
  "/v1/embeddings": { schema: embeddingRequest, body: { model: "upstream-model", input: "Hi" } as Body },
} as const;

export type Path = keyof typeof operations;

/** Stands for a value that is given as JSON text, so that 1e400 arrives as it is written. */
export const rawMarker = "__RAW__";

export interface ParameterServer {
  server: TestServer;
  upstream: ScriptedUpstream;
  /** Sends the operation's request with `changes`; gives status and message. */
  send(path: Path, changes: Record<string, unknown>, rawValue?: string): Promise<[status: number, message: string]>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Serves `upstream-model`, and `small` with a context of 100 tokens. */
export async function startParameterServer(): Promise<ParameterServer> {
  const upstream = await startUpstream((_request, res) => {
    res.writeHead(200, { "content-type": "application/json" });
    res.end(
      '{"id":"x","object":"x","created":1,"choices":[{"index":0,"text":"x","message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":1,"total_tokens":1}}',
    );
  });
  const small = "models:\n  - { id: small, context: 100, deployments: [{ upstream: up, model: upstream-model }] }\n";
  const server = await startHeadrace({ yaml: upstreamYaml(upstream, small) });
  return {
    server,
    upstream,
    async send(path, changes, rawValue) {
      const body = JSON.stringify({ ...operations[path].body, ...changes });
      const text = rawValue === undefined ? body : body.replace(`"${rawMarker}"`, rawValue);
      const response = await server.request(path, { body: text });
      const answer = (await response.json()) as { error?: { message: string; code: string; type: string } };
      if (response.status === 400) {
        expect(answer.error).toMatchObject({ code: "invalid_request", type: "invalid_request_error" });
      }
      return [response.status, answer.error?.message ?? ""];
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}
