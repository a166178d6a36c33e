// Writes a request's headers and body to the socket in one call, through a reused buffer.
import type { Socket } from "bun";
import { ByteSpan, type Bytes } from "../../base/bytes/byte-span.ts";
import { putDigits } from "../../base/bytes/put-digits.ts";
import type { ClientRequest } from "./client-contract.ts";

/** A reused buffer that is larger than nearly every request. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024);
/**
 * The request headers that are still in `scratch`. If the next request has the same headers and an id of the same
 * length, only its id is copied.
 */
const kept = { head: "", idLength: -1 };
const [carriageReturn, lineFeed] = [0x0d, 0x0a];
/** An upper bound for the bytes of the headers that this file adds, without the request id. */
const ownFieldsRoom = 128;

export type RequestParts = Pick<ClientRequest, "requestId" | "body" | "content">;

/**
 * The result of a write that the socket accepted only in part. `sent` is the number of written bytes, or -1 if the
 * socket is closed. The caller must send `unsent`.
 */
export interface WrittenInPart {
  sent: number;
  unsent: Uint8Array[];
}

/**
 * Writes a request. `head` is the ASCII text of the request line and of the headers that many requests share. Returns
 * undefined if everything was written.
 */
export function writeRequest(socket: Socket<unknown>, head: string, parts: RequestParts): WrittenInPart | undefined {
  const { requestId, body, content } = parts;
  // Each UTF-16 code unit takes at most three bytes in UTF-8.
  const bodyRoom = typeof body === "string" ? body.length * 3 : (body?.length ?? 0);
  if (body !== undefined && head.length + ownFieldsRoom + bodyRoom > scratch.byteLength) {
    return writeLarge(socket, head, parts, typeof body === "string" ? ByteSpan.of(body) : body);
  }
  const room = head.length + (requestId?.length ?? 0) + ownFieldsRoom + bodyRoom;
  const buffer = room <= scratch.byteLength ? scratch : Buffer.allocUnsafe(room);
  let length = putHead(buffer, head, requestId, content ? content.length : lengthOf(body));
  if (typeof body === "string") {
    length += buffer.write(body, length, "utf8");
  } else if (body) {
    body.copyTo(buffer, length);
    length += body.length;
  }
  const sent = socket.write(buffer, 0, length);
  if (sent === length) return undefined;
  const from = Math.max(0, sent);
  return {
    sent,
    unsent: [buffer === scratch ? Buffer.from(scratch.subarray(from, length)) : buffer.subarray(from, length)],
  };
}

/** Writes a body that is larger than the buffer, without copying all of it. */
function writeLarge(
  socket: Socket<unknown>,
  head: string,
  { requestId }: RequestParts,
  body: Bytes,
): WrittenInPart | undefined {
  const headRoom = head.length + (requestId?.length ?? 0) + ownFieldsRoom;
  const buffer = headRoom <= scratch.byteLength ? scratch : Buffer.allocUnsafe(headRoom);
  let length = putHead(buffer, head, requestId, body.length);
  // The beginning of the body fills the rest of the buffer.
  const rest = body.pieces;
  for (let piece = rest[0]; piece && length < buffer.byteLength; piece = rest[0]) {
    const part = piece.subarray(0, buffer.byteLength - length);
    buffer.set(part, length);
    length += part.byteLength;
    if (part.byteLength === piece.byteLength) rest.shift();
    else rest[0] = piece.subarray(part.byteLength);
  }
  const first = socket.write(buffer, 0, length);
  if (first < length)
    return { sent: first, unsent: [Buffer.from(buffer.subarray(Math.max(0, first), length)), ...rest] };
  // If the socket closes between the two writes, its close event reports that.
  const more = writePieces(socket, rest);
  return rest.length === 0 ? undefined : { sent: length + more, unsent: rest };
}

/** Writes the pieces, and removes what was written from the array. Returns the number of written bytes. */
export function writePieces(socket: Socket<unknown>, pieces: Uint8Array[]): number {
  let sent = 0;
  for (let piece = pieces[0]; piece; piece = pieces[0]) {
    const taken = Math.max(0, socket.write(piece));
    sent += taken;
    if (taken < piece.byteLength) {
      pieces[0] = piece.subarray(taken);
      break;
    }
    pieces.shift();
  }
  return sent;
}

function lengthOf(body: string | Bytes | undefined): number | undefined {
  return typeof body === "string" ? Buffer.byteLength(body) : body?.length;
}

/** Writes the headers into the buffer. Returns their length, including the empty line. */
function putHead(buffer: Buffer, head: string, requestId: string | undefined, bodyLength: number | undefined): number {
  const idLength = requestId?.length ?? -1;
  let at = head.length;
  if (buffer !== scratch || kept.idLength !== idLength || kept.head !== head) {
    const id = requestId === undefined ? "" : `x-request-id: ${requestId}\r\n`;
    buffer.write(`${head}${id}content-length: `, 0, "latin1");
    at += id.length;
    if (buffer === scratch) {
      kept.head = head;
      kept.idLength = idLength;
    }
  } else if (requestId !== undefined) {
    at += "x-request-id: ".length;
    buffer.write(requestId, at, "latin1");
    at += idLength + "\r\n".length;
  }
  if (bodyLength !== undefined) {
    at += "content-length: ".length;
    at = putDigits(buffer, bodyLength, at);
    buffer[at++] = carriageReturn;
    buffer[at++] = lineFeed;
  } else {
    // The end of the headers is about to be overwritten, so `kept` is no longer valid.
    kept.head = "";
  }
  buffer[at++] = carriageReturn;
  buffer[at++] = lineFeed;
  return at;
}
