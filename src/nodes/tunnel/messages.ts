// Protocol v1 of the tunnel: a message is its type, its stream, and a payload, JSON only if small and rare.
import { isUtf8 } from "node:buffer";

/** The other end may have another minor version, whose new types and members are ignored. */
export const protocolMajor = 1;
export const protocolMinor = 0;

export const messageTypes = {
  /** Gateway, first: HelloPayload. */
  hello: 0x01,
  /** Node, in answer: ProofPayload. */
  proof: 0x02,
  /** Gateway: the node's identity is verified. Now everything else may follow. */
  welcome: 0x03,
  /** Node: NodeAnnouncement. */
  announce: 0x04,
  /** A ping of either end, with bytes that come back in a `pong`. */
  ping: 0x05,
  pong: 0x06,
  /**
   * Sent by either end: no more streams will be opened. The other end answers with a `drain`, unless it has sent one
   * already. The gateway answers a node's `drain` only once the node's streams have ended, because until then the node
   * accepts messages that belong to their calls.
   */
  drain: 0x07,
  /** Gateway: NodeStatus. */
  status: 0x08,
  /**
   * Gateway: opens a stream. The length of a RequestPayload as two bytes, that payload, the first piece of the body.
   */
  request: 0x10,
  /** Gateway: more of the request's body. */
  body: 0x11,
  /** Node: HeadPayload. */
  head: 0x12,
  /** Node: more of the answer's body. */
  data: 0x13,
  /** Node: the whole answer is sent; the stream is over. */
  end: 0x14,
  /** Node: FailPayload; the stream is over. */
  fail: 0x15,
  /** Gateway: nobody wants the rest; the stream is over. */
  cancel: 0x16,
  /** Sent by either end: this many bytes more (four bytes) may be sent on a stream. */
  credit: 0x17,
} as const;

/** The bytes before the payload: one for the type, four for the stream. */
export const headBytes = 5;
/** Most bytes of a body in one message. */
export const pieceBytes = 64 * 1024;
/** Most bytes of a JSON payload, except an announcement. */
export const maxPayloadBytes = 16 * 1024;
export const maxAnnouncementBytes = 256 * 1024;
/** Most bytes of a message before the node's identity is verified. */
export const maxEarlyMessageBytes = 8 * 1024;
/** Most bytes of a message after that, in either direction. */
export const maxMessageBytes = Math.max(maxAnnouncementBytes, headBytes + 2 + maxPayloadBytes + pieceBytes);
export const maxPingBytes = 16;

/** The other end violated the protocol, and the connection ends. `message` is for both logs. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

/** Parses a JSON payload. Throws a ProtocolError. */
export function parsePayload(payload: Buffer, maxBytes = maxPayloadBytes): Readonly<Record<string, unknown>> {
  if (payload.length > maxBytes) throw new ProtocolError(`a payload must be at most ${maxBytes} bytes`);
  let value: unknown;
  try {
    if (isUtf8(payload)) value = JSON.parse(payload.toString("utf8"));
  } catch {
    throw new ProtocolError("a payload is no JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ProtocolError("a payload is no object");
  }
  return value as Record<string, unknown>;
}

/** Reads the number of granted bytes. Throws a ProtocolError. */
export function readCredit(payload: Buffer): number {
  const credit = payload.length === 4 ? payload.readUInt32BE(0) : 0;
  if (credit === 0) throw new ProtocolError("a credit is a number of bytes above 0");
  return credit;
}

export function creditPayload(bytes: number): Buffer {
  const payload = Buffer.allocUnsafe(4);
  payload.writeUInt32BE(bytes);
  return payload;
}
