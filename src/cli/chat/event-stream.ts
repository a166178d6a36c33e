// The events of a streamed answer.
import { SseParser } from "../../base/text/sse.ts";

/**
 * The data of each event of a `text/event-stream`. Throws on an event beyond 8 MiB, and the reason of `signal` as soon as
 * that is aborted.
 */
export async function* readEvents(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<string> {
  const parser = new SseParser();
  const reader = body.getReader();
  // Aborting the request does not always end a read that has begun.
  const aborted = Promise.withResolvers<never>();
  // The race below gets the rejection; without a read under way nobody does.
  aborted.promise.catch(() => {});
  const onAbort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    for (;;) {
      const { value, done } = await Promise.race([reader.read(), aborted.promise]);
      if (done) return;
      yield* parser.push(value);
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    // The reader stops here, and the connection is given up.
    void reader.cancel().catch(() => {});
  }
}
