// Puts a request into one write: its head and its body, in a buffer that is used again for the next.
import type { Socket } from "bun";

/** Larger than nearly every request. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024);
/** What the scratch buffer begins with, up to the body's length: the next request mostly has all of it but the id. */
const kept = { head: "", idLength: -1 };
const [zero, carriageReturn, lineFeed] = [0x30, 0x0d, 0x0a];
/** More than the fields take that are written here, beside the request id. */
const ownFieldsRoom = 128;

export interface RequestParts {
  /** ASCII: the request line and the fields that many requests have in common. */
  readonly head: string;
  /** Its own field `x-request-id`; ASCII. */
  readonly requestId: string | undefined;
  readonly body: string | Uint8Array | undefined;
}

/** `sent` is what the kernel took (-1: the socket is closed), `unsent` the rest, which is the caller's to send. */
export interface Written {
  sent: number;
  unsent: Uint8Array | undefined;
}

export function writeRequest(socket: Socket<unknown>, parts: RequestParts): Written {
  const { head, requestId, body } = parts;
  if (body instanceof Uint8Array && head.length + ownFieldsRoom + body.byteLength > scratch.byteLength) {
    return writeLarge(socket, parts, body);
  }
  // At most three bytes of UTF-8 for each unit of a string.
  const bodyRoom = typeof body === "string" ? body.length * 3 : (body?.byteLength ?? 0);
  const room = head.length + (requestId?.length ?? 0) + ownFieldsRoom + bodyRoom;
  const buffer = room <= scratch.byteLength ? scratch : Buffer.allocUnsafe(room);
  let length = putHead(buffer, parts);
  if (typeof body === "string") {
    length += buffer.write(body, length, "utf8");
  } else if (body) {
    buffer.set(body, length);
    length += body.byteLength;
  }
  const sent = socket.write(buffer, 0, length);
  if (sent === length) return { sent, unsent: undefined };
  const from = Math.max(0, sent);
  return {
    sent,
    unsent: buffer === scratch ? Buffer.from(scratch.subarray(from, length)) : buffer.subarray(from, length),
  };
}

/** A body of megabytes is not copied to be put behind its head. */
function writeLarge(socket: Socket<unknown>, parts: RequestParts, body: Uint8Array): Written {
  const headRoom = parts.head.length + (parts.requestId?.length ?? 0) + ownFieldsRoom;
  const buffer = headRoom <= scratch.byteLength ? scratch : Buffer.allocUnsafe(headRoom);
  const headLength = putHead(buffer, parts);
  const first = Math.min(body.byteLength, buffer.byteLength - headLength);
  buffer.set(body.subarray(0, first), headLength);
  const length = headLength + first;
  const sent = socket.write(buffer, 0, length);
  if (sent < length) {
    return { sent, unsent: Buffer.concat([buffer.subarray(Math.max(0, sent), length), body.subarray(first)]) };
  }
  const rest = body.byteLength - first;
  // Closed between the two: its end is told by its event, and it stays true that some of the request was sent.
  const more = Math.max(0, socket.write(body, first, rest));
  return { sent: length + more, unsent: more === rest ? undefined : body.subarray(first + more) };
}

/** Gives the length of the head, with the empty line that ends it. */
function putHead(buffer: Buffer, { head, requestId, body }: RequestParts): number {
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
    at = putNumber(buffer, typeof body === "string" ? Buffer.byteLength(body) : body.byteLength, at);
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

/** A whole number that is not negative, in decimal digits; gives what is behind it. */
function putNumber(buffer: Buffer, value: number, start: number): number {
  let end = start + 1;
  for (let rest = value; rest >= 10; rest = Math.floor(rest / 10)) end++;
  let rest = value;
  for (let at = end - 1; at >= start; at--) {
    const tenth = Math.floor(rest / 10);
    buffer[at] = zero + rest - tenth * 10;
    rest = tenth;
  }
  return end;
}
