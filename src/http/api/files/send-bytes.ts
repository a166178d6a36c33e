// Sends bytes from a store at the client's pace.
import type { ClientStream } from "../../../base/bytes/client-stream.ts";
import { freeBytes } from "../../../base/bytes/free-bytes.ts";
import type { Cancellation } from "../../../base/cancellation.ts";
import type { Answer } from "../../exchange/route.ts";

/**
 * Resolves when the first bytes have arrived, so that a store that cannot read them causes an error, not a cut answer.
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

/** Bytes of one write, which are copied to the output buffer directly, without conversion to text. */
const sentAtOnce = 16 * 1024;
/** Maximum milliseconds that a client that reads nothing keeps the store waiting; its connection is cut sooner. */
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
