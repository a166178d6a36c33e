// Puts a request into one write: its head and its body, in a buffer that is used again for the next.
import type { Socket } from "bun";

/** Larger than nearly every request. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024);

/** `sent` is what the kernel took (-1: the socket is closed), `unsent` the rest, which is the caller's to send. */
export interface Written {
  sent: number;
  unsent: Uint8Array | undefined;
}

/** `head` is ASCII and says how long the body is. */
export function writeRequest(socket: Socket<unknown>, head: string, body: string | Uint8Array | undefined): Written {
  // At most three bytes of UTF-8 for each unit of a string.
  const room = head.length + (typeof body === "string" ? body.length * 3 : (body?.byteLength ?? 0));
  const buffer = room <= scratch.byteLength ? scratch : Buffer.allocUnsafe(room);
  let length = buffer.write(head, 0, "latin1");
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
