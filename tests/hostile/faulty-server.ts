// A gateway before a raw model server with short time limits, and what a client sees of it.
import { expect } from "bun:test";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { goodAnswer, type RawUpstream, rawYaml, startRawUpstream } from "./raw-upstream.ts";

export const chat = { model: "upstream-model", messages: [{ role: "user", content: "Hi" }] };

export interface Seen {
  status: number;
  code: string | undefined;
  message: string;
  headers: Headers;
}

export interface FaultyServer {
  server: TestServer;
  upstream: RawUpstream;
  ask(body?: unknown, path?: string): Promise<Seen>;
  /** Fails unless the model server can be used at once, whatever happened before. */
  expectUnpoisoned(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** One second for the first byte, one second of silence. */
export async function startFaultyServer(): Promise<FaultyServer> {
  const upstream = await startRawUpstream();
  const server = await startHeadrace({ yaml: rawYaml(upstream, ", timeout_seconds: 1, idle_seconds: 1") });
  const ask = async (body: unknown = chat, path = "/v1/chat/completions"): Promise<Seen> => {
    // Longer than any time limit here: a request that hangs fails its own test and no other.
    const response = await server.request(path, { body, signal: AbortSignal.timeout(10_000) });
    const answer = (await response.json()) as { error?: { code: string; message: string } };
    const members = Object.keys(answer.error ?? {}).filter((name) => name !== "param");
    if (answer.error) expect(members).toEqual(["message", "type", "code"]);
    const { code, message = "" } = answer.error ?? {};
    return { status: response.status, code, message, headers: response.headers };
  };
  return {
    server,
    upstream,
    ask,
    async expectUnpoisoned() {
      upstream.answerEarly(false);
      upstream.script((socket) => void socket.write(goodAnswer));
      for (let i = 0; i < 3; i++) expect((await ask()).status).toBe(200);
    },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await upstream[Symbol.asyncDispose]();
    },
  };
}
