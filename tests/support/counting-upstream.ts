// A model server that counts every request and token that it generates, and breaks off in the way that a request names.
import { type AddressInfo, createServer, type Socket } from "node:net";
import { isLook } from "./scripted-upstream.ts";

/** Before the first byte of an answer, or in place of one. */
export const earlyFaults = [
  "reset",
  "close",
  "half-head",
  "status-500",
  "status-503",
  "status-429",
  "silent",
  "not-json",
  "truncated",
] as const;
/** In the middle of a stream. */
export const streamFaults = ["cut", "reset-later", "malformed", "mute", "error-event"] as const;
export type Fault = (typeof earlyFaults)[number] | (typeof streamFaults)[number];

/** What a client asks of this server, in the text of its prompt. */
export interface Order {
  /** One for each request of a client. */
  mark: string;
  /** That the model is to generate. */
  tokens: number;
  fault?: Fault;
  /** Before the head of an answer. */
  lateMs?: number;
}

/** What it did for one request of the gateway. */
export interface Generated {
  mark: string;
  fault: Fault | undefined;
  /** How often the request came. */
  times: number;
  completionTokens: number;
  /** Whether the last byte of a good answer was written. */
  finished: boolean;
}

export interface CountingUpstream {
  /** Base URL of the model server of this name: each serves `<name>-model`. */
  url(name: string): string;
  /** By the gateway's request id. */
  generated: ReadonlyMap<string, Generated>;
  /** Connections on which the gateway is. */
  connections(): number;
  /** Ends every connection, as a model server does with those that it finds idle. */
  hangUp(): void;
  [Symbol.asyncDispose](): Promise<void>;
}

export const promptTokens = 11;
/** Each token is one piece of a stream. */
export const word = "word ";
const pieceMs = 8;

export function orderText(order: Order): string {
  return `order ${JSON.stringify(order)}`;
}

export async function startCountingUpstream(): Promise<CountingUpstream> {
  const generated = new Map<string, Generated>();
  const sockets = new Set<Socket>();
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => sockets.delete(socket));
    let buffer = "";
    let answering: Promise<unknown> = Promise.resolve();
    socket.on("data", (bytes) => {
      buffer += bytes.toString("latin1");
      for (;;) {
        const end = buffer.indexOf("\r\n\r\n");
        if (end < 0) return;
        const head = buffer.slice(0, end);
        const length = Number(/^content-length: *(\d+)$/im.exec(head)?.[1] ?? 0);
        const next = end + 4 + length;
        if (buffer.length < next) return;
        const body = buffer.slice(end + 4, next);
        buffer = buffer.slice(next);
        answering = answering.then(() => answer(socket, head, body, generated)).catch(() => socket.destroy());
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const hangUp = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: (name) => `http://127.0.0.1:${port}/${name}/v1`,
    generated,
    connections: () => sockets.size,
    hangUp,
    async [Symbol.asyncDispose]() {
      hangUp();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface AskedFor {
  model: string;
  stream?: boolean;
  stream_options?: { include_usage?: boolean };
  messages?: { content: string }[];
  prompt?: string;
  input?: string;
}

async function answer(socket: Socket, head: string, text: string, all: Map<string, Generated>): Promise<void> {
  const [, name = ""] = /^\w+ \/([^/]+)\//.exec(head) ?? [];
  if (head.startsWith("GET ")) {
    const model = { id: `${name}-model`, object: "model", created: 1_700_000_000, owned_by: "soak" };
    sendJson(socket, 200, { object: "list", data: [model] });
    return;
  }
  if (isLook(text)) {
    sendJson(socket, 404, { error: { message: "not found" } });
    return;
  }
  const body = JSON.parse(Buffer.from(text, "latin1").toString()) as AskedFor;
  const prompt = body.messages?.at(-1)?.content ?? body.prompt ?? body.input ?? "";
  const order = JSON.parse(prompt.replace(/^order /, "")) as Order;
  const id = /^x-request-id: *(\S+)$/im.exec(head)?.[1] ?? `none:${order.mark}`;
  const record = all.get(id) ?? {
    ...{ mark: order.mark, fault: order.fault, times: 0, completionTokens: 0, finished: false },
  };
  record.times++;
  all.set(id, record);
  await Bun.sleep(order.lateMs ?? 0);
  if (order.fault && breakEarly(socket, order.fault)) return;
  if (body.input !== undefined) {
    record.finished = true;
    const data = [{ object: "embedding", index: 0, embedding: [0.1, 0.2, 0.3] }];
    const usage = { prompt_tokens: promptTokens, total_tokens: promptTokens };
    return sendJson(socket, 200, { object: "list", data, model: body.model, usage });
  }
  if (body.stream) await stream(socket, body, order, record);
  else whole(socket, body, order, record);
}

/** Whether there will be no answer. */
function breakEarly(socket: Socket, fault: Fault): boolean {
  const error = (status: number, headers = "") =>
    sendJson(socket, status, { error: { message: "Not now.", type: "server_error" } }, headers);
  switch (fault) {
    case "reset":
      socket.resetAndDestroy();
      return true;
    case "close":
      socket.end();
      return true;
    case "half-head":
      socket.end("HTTP/1.1 200 OK\r\nContent-Ty");
      return true;
    case "status-500":
      error(500);
      return true;
    case "status-503":
      error(503);
      return true;
    case "status-429":
      error(429, "Retry-After: 1\r\n");
      return true;
    case "silent":
      return true;
    case "not-json":
      send(socket, 200, "application/json", "<html>It works!</html>");
      return true;
    case "truncated":
      socket.end('HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 500\r\n\r\n{"id":"x"');
      return true;
    default:
      return false;
  }
}

const usageOf = (tokens: number) => ({
  ...{ prompt_tokens: promptTokens, completion_tokens: tokens, total_tokens: promptTokens + tokens },
});

function whole(socket: Socket, body: AskedFor, { tokens }: Order, record: Generated): void {
  record.completionTokens += tokens;
  record.finished = true;
  const text = word.repeat(tokens);
  const choice = body.messages ? { message: { role: "assistant", content: text } } : { text, logprobs: null };
  const choices = [{ index: 0, ...choice, finish_reason: "stop" }];
  const object = body.messages ? "chat.completion" : "text_completion";
  sendJson(socket, 200, { id: "up-1", object, created: 1, model: body.model, choices, usage: usageOf(tokens) });
}

async function stream(socket: Socket, body: AskedFor, { tokens, fault }: Order, record: Generated): Promise<void> {
  socket.write("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
  const write = (text: string) => socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`);
  const object = body.messages ? "chat.completion.chunk" : "text_completion";
  const event = (choices: unknown[], more = {}) =>
    write(`data: ${JSON.stringify({ id: "up-1", object, created: 1, model: body.model, choices, ...more })}\n\n`);
  const piece = body.messages ? { delta: { content: word } } : { text: word, logprobs: null };
  const last = body.messages ? { delta: {} } : { text: "", logprobs: null };
  for (let token = 0; token < tokens; token++) {
    if (socket.destroyed) return;
    record.completionTokens++;
    event([{ index: 0, ...piece, finish_reason: null }]);
    if (fault && token >= tokens / 2) return breakLater(socket, fault, write);
    await Bun.sleep(pieceMs);
  }
  if (socket.destroyed) return;
  event([{ index: 0, ...last, finish_reason: "stop" }]);
  if (body.stream_options?.include_usage) event([], { usage: usageOf(tokens) });
  write("data: [DONE]\n\n");
  socket.write("0\r\n\r\n");
  record.finished = true;
}

async function breakLater(socket: Socket, fault: Fault, write: (text: string) => void): Promise<void> {
  // What was written before is to arrive by itself: of what a reset throws away nobody knows how much there was.
  await Bun.sleep(20);
  if (fault === "cut") socket.end();
  else if (fault === "reset-later") socket.resetAndDestroy();
  else if (fault === "malformed") write('data: {"choices": [oops\n\n');
  else if (fault === "error-event") write('data: {"error":{"message":"The model crashed."}}\n\n');
  // Else it is mute from here on.
}

function sendJson(socket: Socket, status: number, body: unknown, headers = ""): void {
  send(socket, status, "application/json", JSON.stringify(body), headers);
}

function send(socket: Socket, status: number, type: string, body: string, headers = ""): void {
  const length = Buffer.byteLength(body);
  socket.write(
    `HTTP/1.1 ${status} Status\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n${headers}\r\n${body}`,
  );
}
