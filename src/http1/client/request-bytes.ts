// Puts a request into one write: its head and its body, in a buffer that is used again for the next.
import type { Socket } from "bun";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import { putDigits } from "../../base/bytes/put-digits.ts";
import type { ClientRequest } from "./client-contract.ts";

/** Larger than nearly every request. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024);
/** What the scratch buffer begins with, up to the body's length: the next request mostly has all of it but the id. */
const kept = { head: "", idLength: -1 };
const [carriageReturn, lineFeed] = [0x0d, 0x0a];
/** More than the fields take that are written here, beside the request id. */
const ownFieldsRoom = 128;

export type RequestParts = Pick<ClientRequest, "requestId" | "body">;

/** `sent` is what the kernel took (-1: the socket is closed), `unsent` the rest, which is the caller's to send. */
export interface WrittenInPart {
  sent: number;
  unsent: Uint8Array;
}

/**
 * `head`: the request line and the fields that many requests have in common; ASCII, as is the request's id. Undefined:
 * the kernel took all of it.
 */
export function writeRequest(socket: Socket<unknown>, head: string, parts: RequestParts): WrittenInPart | undefined {
  const { requestId, body } = parts;
  if (typeof body === "object" && head.length + ownFieldsRoom + body.length > scratch.byteLength) {
    return writeLarge(socket, head, parts, body.solid);
  }
  // At most three bytes of UTF-8 for each unit of a string.
  const bodyRoom = typeof body === "string" ? body.length * 3 : (body?.length ?? 0);
  const room = head.length + (requestId?.length ?? 0) + ownFieldsRoom + bodyRoom;
  const buffer = room <= scratch.byteLength ? scratch : Buffer.allocUnsafe(room);
  let length = putHead(buffer, head, parts);
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
    unsent: buffer === scratch ? Buffer.from(scratch.subarray(from, length)) : buffer.subarray(from, length),
  };
}

/** A body of megabytes is not copied to be put behind its head. */
function writeLarge(
  socket: Socket<unknown>,
  head: string,
  parts: RequestParts,
  body: ByteSpan,
): WrittenInPart | undefined {
  const headRoom = head.length + (parts.requestId?.length ?? 0) + ownFieldsRoom;
  const buffer = headRoom <= scratch.byteLength ? scratch : Buffer.allocUnsafe(headRoom);
  const headLength = putHead(buffer, head, parts);
  const split = body.start + Math.min(body.length, buffer.byteLength - headLength);
  body.buffer.copy(buffer, headLength, body.start, split);
  const length = headLength + split - body.start;
  const sent = socket.write(buffer, 0, length);
  if (sent < length) {
    return {
      sent,
      unsent: Buffer.concat([buffer.subarray(Math.max(0, sent), length), body.buffer.subarray(split, body.end)]),
    };
  }
  const rest = body.end - split;
  // Closed between the two: its end is told by its event, and it stays true that some of the request was sent.
  const more = Math.max(0, socket.write(body.buffer, split, rest));
  return more === rest ? undefined : { sent: length + more, unsent: body.buffer.subarray(split + more, body.end) };
}

/** Gives the length of the head, with the empty line that ends it. */
function putHead(buffer: Buffer, head: string, { requestId, body }: RequestParts): number {
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
  if (body !== undefined) {
    at += "content-length: ".length;
    at = putDigits(buffer, typeof body === "string" ? Buffer.byteLength(body) : body.length, at);
    buffer[at++] = carriageReturn;
    buffer[at++] = lineFeed;
  } else {
    // What is overwritten here is no longer kept.
    kept.head = "";
  }
  buffer[at++] = carriageReturn;
  buffer[at++] = lineFeed;
  return at;
}
