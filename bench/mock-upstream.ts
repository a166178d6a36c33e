// The mock model server, a process of its own: a bare TCP server that answers at a fraction of a gateway's cost and
// counts what it was asked. It prints its port, and ends when its standard input does. Argument: the port, 0 for any.
import type { Socket } from "bun";
import {
  chatAnswer,
  chatAnswerOf,
  completionTokens,
  doneEvent,
  finishEvent,
  messagesAnswer,
  modelList,
  planOf,
  promptTokens,
  responsesAnswer,
  roleEvent,
  textEvent,
  usageEvent,
} from "./workload.ts";

/** Requests to the mock under one path since it started. */
export interface UpstreamCounters {
  requests: number;
  /** Requests that were answered as a stream. */
  streams: number;
  /** Tokens as reported in its answers. */
  promptTokens: number;
  completionTokens: number;
}

export interface MockCounters {
  connections: number;
  /**
   * Counters by the first segment of the path before `/v1`, "" without one: who asks is told apart by the address it
   * was given.
   */
  sources: Record<string, UpstreamCounters>;
}

interface Head {
  /** Length of the body. */
  length: number;
  operation: "chat" | "responses" | "messages" | "models" | "counters" | "unknown";
  counters: UpstreamCounters;
}

interface Connection {
  /** Bytes of a head, or of a body that must be looked into, that is not complete yet. */
  pending: Buffer | undefined;
  /** The head of a request whose body is still to come; its length counts down. */
  skipping: { head: Head; left: number } | undefined;
  /** Bytes of an answer that the socket did not take yet. */
  unsent: Buffer | undefined;
  paced: PacedStream | undefined;
}

interface PacedStream {
  paceMs: number;
  left: number;
  nextAtMs: number;
  withUsage: boolean;
  counters: UpstreamCounters;
}

type Client = Socket<Connection>;

const mock: MockCounters = { connections: 0, sources: {} };
const paced = new Set<Client>();
const headEnd = Buffer.from("\r\n\r\n");
const tickMs = 1;
/** A larger body has no plan for a stream in it, and is counted without being kept. */
const largestKeptBody = 32_768;
/** Who asks under this name has streams begun for such bodies, which are silent from then on. */
const silentSource = "silent";
/** A gateway looks twice at an answer that says much fewer. */
const bytesPerToken = 4;

const streamHead =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-accel-buffering: no\r\ntransfer-encoding: chunked\r\n\r\n";
const lastPiece = "0\r\n\r\n";
const textPiece = Buffer.from(piece(textEvent));
const streamStart = Buffer.from(streamHead + piece(roleEvent));
const answers = {
  chat: jsonAnswer(chatAnswer),
  responses: jsonAnswer(responsesAnswer),
  messages: jsonAnswer(messagesAnswer),
  models: jsonAnswer(modelList),
  refused: Buffer.from("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"),
};
/** Whole streams at full speed, by number of chunks and whether usage was asked for. */
const wholeStreams = new Map<string, Buffer>();
/** Answers to large bodies, by prompt tokens. */
const largeAnswers = new Map<number, Buffer>();
const asked: Readonly<Record<string, "chat" | "responses" | "messages">> = {
  "/v1/chat/completions": "chat",
  "/v1/responses": "responses",
  "/v1/messages": "messages",
};
/** Heads seen before: a gateway sends the same one again and again, and comparing is cheaper than reading. */
const heads = new Map<string, Head>();
const maxHeads = 1_000;

/** One piece of chunked transfer encoding (RFC 9112, 7.1). */
function piece(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}

function jsonAnswer(text: string): Buffer {
  return Buffer.from(
    `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
}

function streamTail(withUsage: boolean): string {
  return piece(finishEvent) + (withUsage ? piece(usageEvent) : "") + piece(doneEvent) + lastPiece;
}

function wholeStream(chunks: number, withUsage: boolean): Buffer {
  const name = `${chunks} ${withUsage}`;
  let bytes = wholeStreams.get(name);
  if (!bytes) {
    const text = streamHead + piece(roleEvent) + piece(textEvent).repeat(chunks) + streamTail(withUsage);
    bytes = Buffer.from(text);
    wholeStreams.set(name, bytes);
  }
  return bytes;
}

function send(client: Client, bytes: Buffer): void {
  const { data } = client;
  if (data.unsent) {
    data.unsent = Buffer.concat([data.unsent, bytes]);
    return;
  }
  const sent = client.write(bytes);
  if (sent < bytes.length) data.unsent = bytes.subarray(Math.max(sent, 0));
}

function received(client: Client, bytes: Buffer): void {
  const { data } = client;
  let rest = data.pending ? Buffer.concat([data.pending, bytes]) : bytes;
  data.pending = undefined;
  while (rest.length > 0) {
    if (data.skipping) {
      const { head, left } = data.skipping;
      if (rest.length < left) {
        data.skipping.left -= rest.length;
        return;
      }
      data.skipping = undefined;
      rest = rest.subarray(left);
      send(client, answer(client, head, undefined));
      continue;
    }
    const end = rest.indexOf(headEnd);
    if (end < 0) break;
    const head = headOf(rest.toString("latin1", 0, end));
    const bodyStart = end + headEnd.length;
    if (head.length > largestKeptBody) {
      data.skipping = { head, left: head.length };
      rest = rest.subarray(bodyStart);
      continue;
    }
    if (rest.length < bodyStart + head.length) break;
    send(client, answer(client, head, rest.subarray(bodyStart, bodyStart + head.length)));
    rest = rest.subarray(bodyStart + head.length);
  }
  // The runtime uses its buffer again.
  if (rest.length > 0) data.pending = Buffer.from(rest);
}

function headOf(text: string): Head {
  const known = heads.get(text);
  if (known) return known;
  const [, method, source = "", path] = /^(GET|POST) (?:\/(\w+))??(\/v1\/\S+|\/counters) /.exec(text) ?? [];
  const operation =
    method === "POST" && path !== undefined
      ? (asked[path] ?? "unknown")
      : path === "/v1/models"
        ? "models"
        : path === "/counters"
          ? "counters"
          : "unknown";
  let counters = mock.sources[source];
  if (!counters) {
    counters = { requests: 0, streams: 0, promptTokens: 0, completionTokens: 0 };
    mock.sources[source] = counters;
  }
  const head: Head = { length: Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? 0), operation, counters };
  if (heads.size < maxHeads) heads.set(text, head);
  return head;
}

/** The whole answer, or the start of a stream that goes on by `tick` or is held. `body`: undefined where it is large. */
function answer(client: Client, { operation, counters, length }: Head, body: Buffer | undefined): Buffer {
  if (operation === "models") return answers.models;
  if (operation === "counters") return jsonAnswer(JSON.stringify(mock));
  if (operation === "unknown") return answers.refused;
  counters.requests++;
  // It streams chat completions alone.
  if (operation !== "chat") {
    countTokens(counters);
    return answers[operation];
  }
  if (body === undefined) return counters === mock.sources[silentSource] ? streamStart : largeAnswer(counters, length);
  if (body.indexOf('"stream":true') < 0) {
    countTokens(counters);
    return answers.chat;
  }
  counters.streams++;
  const text = body.toString();
  const { chunks, paceMs, hold } = planOf(text);
  const withUsage = text.includes('"include_usage":true');
  if (hold) return streamStart;
  if (paceMs === 0) {
    countTokens(counters);
    return wholeStream(chunks, withUsage);
  }
  // Streams that began together do not beat together.
  const nextAtMs = performance.now() + Math.random() * paceMs;
  client.data.paced = { paceMs, left: chunks, nextAtMs, withUsage, counters };
  paced.add(client);
  return streamStart;
}

function largeAnswer(counters: UpstreamCounters, length: number): Buffer {
  const tokens = Math.ceil(length / bytesPerToken);
  countTokens(counters, tokens);
  let bytes = largeAnswers.get(tokens);
  if (!bytes) {
    bytes = jsonAnswer(chatAnswerOf(tokens));
    largeAnswers.set(tokens, bytes);
  }
  return bytes;
}

function countTokens(counters: UpstreamCounters, tokens = promptTokens): void {
  counters.promptTokens += tokens;
  counters.completionTokens += completionTokens;
}

function tick(): void {
  const now = performance.now();
  for (const client of paced) {
    const stream = client.data.paced;
    if (!stream || now < stream.nextAtMs) continue;
    // One that is late is not made up for: chunks in one packet would be cheaper than chunks.
    stream.nextAtMs = Math.max(stream.nextAtMs + stream.paceMs, now);
    stream.left--;
    if (stream.left > 0) {
      send(client, textPiece);
      continue;
    }
    paced.delete(client);
    client.data.paced = undefined;
    countTokens(stream.counters);
    send(client, Buffer.concat([textPiece, Buffer.from(streamTail(stream.withUsage))]));
  }
}

const server = Bun.listen<Connection>({
  hostname: "127.0.0.1",
  port: Number(process.argv[2] ?? 0),
  socket: {
    open(client) {
      mock.connections++;
      client.data = { pending: undefined, skipping: undefined, unsent: undefined, paced: undefined };
    },
    data: received,
    drain(client) {
      const { unsent } = client.data;
      client.data.unsent = undefined;
      if (unsent) send(client, unsent);
    },
    close: (client) => void paced.delete(client),
    error: (client) => void client.end(),
  },
});
setInterval(tick, tickMs);
process.stdin.on("end", () => process.exit(0)).resume();
process.stdout.write(`${JSON.stringify({ port: server.port })}\n`);
