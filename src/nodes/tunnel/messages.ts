// Protocol v1 of the tunnel. A message has a type, a stream number and a payload, which is JSON for small and rare
// messages.
import { isUtf8 } from "node:buffer";

/** Major version of the protocol. New types and members of other minor versions are ignored. */
export const protocolMajor = 1;
export const protocolMinor = 0;

export const messageTypes = {
  /** The gateway sends the first message of a connection (HelloPayload). */
  hello: 0x01,
  /** The node answers `hello` (ProofPayload). */
  proof: 0x02,
  /** The gateway reports that the node is verified. All other messages may follow. */
  welcome: 0x03,
  /** The node announces its models, MCP servers and load (NodeAnnouncement). */
  announce: 0x04,
  /** From either end: a heartbeat, whose bytes come back in a `pong`. */
  ping: 0x05,
  pong: 0x06,
  /**
   * From either end: no new streams will be opened. The other end answers with `drain` unless it has sent one. The
   * gateway answers a node's `drain` only when the node's streams have ended; until then, messages of open calls are
   * accepted.
   */
  drain: 0x07,
  /** The gateway sends the node's name and approved models (NodeStatus). */
  status: 0x08,
  /**
   * The gateway opens a stream. Payload: two bytes with the length of a RequestPayload, the RequestPayload, and
   * the first piece of the body.
   */
  request: 0x10,
  /** The gateway sends the next piece of the request's body. */
  body: 0x11,
  /** The node sends the answer's status and headers (HeadPayload). */
  head: 0x12,
  /** The node sends the next piece of the answer's body. */
  data: 0x13,
  /** The node reports that the answer is complete and the stream has ended. */
  end: 0x14,
  /** The node reports that the request has failed (FailPayload) and the stream has ended. */
  fail: 0x15,
  /** The gateway no longer wants the answer, and the stream has ended. */
  cancel: 0x16,
  /** From either end: the sender of a body may send this many more bytes (four bytes). */
  credit: 0x17,
} as const;

/** Number of bytes before the payload: one for the type, four for the stream number. */
export const headBytes = 5;
/** Maximum bytes of a body in one message. */
export const pieceBytes = 64 * 1024;
/** Maximum bytes of a JSON payload, except for announcements. */
export const maxPayloadBytes = 16 * 1024;
export const maxAnnouncementBytes = 256 * 1024;
/** Maximum bytes of a message before the node is verified. */
export const maxEarlyMessageBytes = 8 * 1024;
/** Maximum bytes of a message after the node is verified. */
export const maxMessageBytes = Math.max(maxAnnouncementBytes, headBytes + 2 + maxPayloadBytes + pieceBytes);
export const maxPingBytes = 16;

/** The other end violated the protocol, so the connection is closed. Both ends log `message`. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

/** Parses a JSON payload. Throws a ProtocolError if it is invalid. */
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

/** Reads the number of granted bytes. Throws a ProtocolError if the payload is invalid. */
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
