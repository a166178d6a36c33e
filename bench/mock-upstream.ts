// The mock model server, a process of its own: a bare TCP server that answers at a fraction of a gateway's cost and
// counts what it was asked. It prints its port, and ends when its standard input does.
import type { Socket } from "bun";
import {
  chatAnswer,
  doneEvent,
  finishEvent,
  modelList,
  roleEvent,
  type StreamPlan,
  textEvent,
  usageEvent,
} from "./workload.ts";

/** What the mock saw since it started. */
export interface UpstreamCounters {
  connections: number;
  requests: number;
  /** Requests that were answered as a stream. */
  streams: number;
}

interface Connection {
  /** Bytes of a request that is not complete yet. */
  pending: Buffer | undefined;
  /** Bytes of an answer that the socket did not take yet. */
  unsent: Buffer | undefined;
  paced: PacedStream | undefined;
}

interface PacedStream {
  paceMs: number;
  left: number;
  nextAtMs: number;
  withUsage: boolean;
}

type Client = Socket<Connection>;

const counters: UpstreamCounters = { connections: 0, requests: 0, streams: 0 };
const paced = new Set<Client>();
const headEnd = Buffer.from("\r\n\r\n");
const tickMs = 1;

const streamHead =
  "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-accel-buffering: no\r\ntransfer-encoding: chunked\r\n\r\n";
const lastPiece = "0\r\n\r\n";
const textPiece = Buffer.from(piece(textEvent));
const streamStart = Buffer.from(streamHead + piece(roleEvent));
const answers = {
  chat: jsonAnswer(chatAnswer),
  models: jsonAnswer(modelList),
  refused: Buffer.from("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n"),
};
/** Whole streams at full speed, by number of chunks and whether usage was asked for. */
const wholeStreams = new Map<string, Buffer>();

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
    const end = rest.indexOf(headEnd);
    if (end < 0) break;
    const head = rest.toString("latin1", 0, end);
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
    const bodyStart = end + headEnd.length;
    if (rest.length < bodyStart + length) break;
    send(client, answer(client, head, rest.subarray(bodyStart, bodyStart + length)));
    rest = rest.subarray(bodyStart + length);
  }
  // The runtime uses its buffer again.
  if (rest.length > 0) data.pending = Buffer.from(rest);
}

/** The whole answer, or the start of a paced stream, which `tick` goes on with. */
function answer(client: Client, head: string, body: Buffer): Buffer {
  if (head.startsWith("GET /v1/models")) return answers.models;
  if (head.startsWith("GET /counters")) return jsonAnswer(JSON.stringify(counters));
  if (!head.startsWith("POST /v1/chat/completions ")) return answers.refused;
  counters.requests++;
  if (body.indexOf('"stream":true') < 0) return answers.chat;
  counters.streams++;
  const request = JSON.parse(body.toString()) as { bench: StreamPlan; stream_options?: { include_usage?: boolean } };
  const { chunks, paceMs } = request.bench;
  const withUsage = request.stream_options?.include_usage === true;
  if (paceMs === 0) return wholeStream(chunks, withUsage);
  // Streams that began together do not beat together.
  const nextAtMs = performance.now() + Math.random() * paceMs;
  client.data.paced = { paceMs, left: chunks, nextAtMs, withUsage };
  paced.add(client);
  return streamStart;
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
    send(client, Buffer.concat([textPiece, Buffer.from(streamTail(stream.withUsage))]));
  }
}

const server = Bun.listen<Connection>({
  hostname: "127.0.0.1",
  port: 0,
  socket: {
    open(client) {
      counters.connections++;
      client.data = { pending: undefined, unsent: undefined, paced: undefined };
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
