// A model server made of a bare socket: it answers with exactly the bytes of a script, however wrong they are.
import { type AddressInfo, createServer, type Socket } from "node:net";
import { isLook } from "../support/scripted-upstream.ts";

export interface RawUpstreamRequest {
  /** Request line and header lines. */
  head: string;
  body: string;
  /** 0 for the first POST that this server got. */
  number: number;
  /** Set when the gateway closed its side of the connection. */
  hungUp: boolean;
}

export type RawScript = (socket: Socket, request: RawUpstreamRequest) => void | Promise<void>;

export interface RawUpstream {
  /** Base URL, ends in `/v1`. */
  url: string;
  /** Every POST, in order of arrival, but for those that only ask which formats there are. */
  requests: RawUpstreamRequest[];
  script(script: RawScript): void;
  /** Runs `script` as soon as the head is there, without waiting for the body. */
  answerEarly(early: boolean): void;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The credential that the gateway has for this server; nobody else may ever see it. */
export const upstreamKey = "upk-canary-71";

/** Configuration that serves this upstream under the name `up`. */
export function rawYaml(upstream: { url: string }, settings = "", more = ""): string {
  return `upstreams:\n  - { name: up, url: "${upstream.url}", api_key: ${upstreamKey}${settings} }\n${more}`;
}

const modelList = JSON.stringify({
  object: "list",
  data: [{ id: "upstream-model", object: "model", created: 1_700_000_000, owned_by: "raw" }],
});

/** Serves `upstream-model`; GET /v1/models always works, the only format is chat completions, POSTs are the script's. */
export async function startRawUpstream(initial: RawScript = (socket) => void socket.destroy()): Promise<RawUpstream> {
  let script = initial;
  let early = false;
  const requests: RawUpstreamRequest[] = [];
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    let current: RawUpstreamRequest | undefined;
    const hangUp = () => {
      sockets.delete(socket);
      if (current) current.hungUp = true;
    };
    socket.on("end", hangUp);
    socket.on("close", hangUp);
    socket.on("error", hangUp);
    let buffer = "";
    socket.on("data", (bytes) => {
      buffer += bytes.toString("latin1");
      for (;;) {
        const end = buffer.indexOf("\r\n\r\n");
        if (end < 0) return;
        const head = buffer.slice(0, end);
        if (head.startsWith("GET ")) {
          buffer = buffer.slice(end + 4);
          socket.write(plainAnswer(200, modelList));
          continue;
        }
        const length = Number(/^content-length: *(\d+)$/im.exec(head)?.[1] ?? 0);
        const complete = buffer.length >= end + 4 + length;
        if (complete && isLook(buffer.slice(end + 4, end + 4 + length))) {
          buffer = buffer.slice(end + 4 + length);
          socket.write(plainAnswer(404, "{}"));
          continue;
        }
        if (!complete && !early) return;
        current = { head, body: buffer.slice(end + 4, end + 4 + length), number: requests.length, hungUp: false };
        buffer = complete ? buffer.slice(end + 4 + length) : "";
        requests.push(current);
        void script(socket, current);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    script: (next) => {
      script = next;
    },
    answerEarly: (next) => {
      early = next;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A complete answer with the right Content-Length. */
export function plainAnswer(status: number, body: string, headers: Readonly<Record<string, string>> = {}): string {
  const all: Record<string, string> = {
    "Content-Type": "application/json",
    "Content-Length": String(Buffer.byteLength(body)),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Whatever\r\n${lines.join("")}\r\n${body}`;
}

/** Head of an event stream that ends when the connection does. */
export const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

export const completion = {
  id: "chatcmpl-raw",
  object: "chat.completion",
  created: 1_700_000_001,
  model: "upstream-model",
  choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 7, completion_tokens: 1, total_tokens: 8 },
};

export const goodAnswer = plainAnswer(200, JSON.stringify(completion));
