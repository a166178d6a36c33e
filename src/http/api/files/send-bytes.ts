// Sends bytes from a store to a client, no faster than the client reads.
import type { ClientStream } from "../../../base/bytes/client-stream.ts";
import { freeBytes } from "../../../base/bytes/free-bytes.ts";
import type { Cancellation } from "../../../base/cancellation.ts";
import type { Answer } from "../../exchange/route.ts";

/**
 * Resolves once the first bytes are read. If the object cannot be read, the client so gets an error answer and not a
 * truncated file.
 */
export async function sendBytes(
  bytes: AsyncIterable<Uint8Array>,
  contentType: string,
  clientGone: Cancellation,
): Promise<Answer> {
  const pieces = bytes[Symbol.asyncIterator]();
  const first = await pieces.next();
  return {
    status: 200,
    headers: { "content-type": contentType },
    begin: (client) => void pump(client, pieces, first, clientGone),
  };
}

/** Bytes of one write to the client. */
const sentAtOnce = 16 * 1024;
/** The longest time to wait for a client that reads nothing. Its connection is usually closed earlier. */
const behindMs = 120_000;

async function pump(
  client: ClientStream,
  pieces: AsyncIterator<Uint8Array>,
  first: IteratorResult<Uint8Array>,
  clientGone: Cancellation,
): Promise<void> {
  try {
    for (let piece = first; !piece.done; piece = await pieces.next()) {
      clientGone.throwIfCancelled();
      const { buffer, byteOffset, byteLength } = piece.value;
      const bytes = Buffer.from(buffer, byteOffset, byteLength);
      for (let at = 0; at < byteLength; at += sentAtOnce) {
        const keepsUp = client.writeAround("", bytes, at, Math.min(byteLength, at + sentAtOnce), "");
        if (!keepsUp) await caughtUp(client, clientGone);
      }
      freeBytes(bytes);
    }
    client.end();
  } catch {
    await pieces.return?.();
    client.abort();
  }
}

function caughtUp(client: ClientStream, clientGone: Cancellation): Promise<void> {
  return new Promise((resolve, reject) => {
    const over = (settle: () => void) => {
      clearTimeout(timer);
      clientGone.off(gone);
      settle();
    };
    const gone = () => over(() => reject(new Error("The client takes nothing.")));
    const timer = setTimeout(gone, behindMs);
    clientGone.onCancel(gone);
    client.onDrain = () => over(resolve);
  });
}
