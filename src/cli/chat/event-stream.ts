// The events of a streamed answer.
import { SseParser } from "../../base/text/sse.ts";

/**
 * Yields the data of each event of a `text/event-stream`. Throws on an event beyond 8 MiB, and throws the reason of
 * `signal` as soon as `signal` is aborted.
 */
export async function* readEvents(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<string> {
  const parser = new SseParser();
  const reader = body.getReader();
  // Aborting the request does not always end a running read.
  const aborted = Promise.withResolvers<never>();
  // The race below handles the rejection during a read. This handler covers the time without a read.
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
    // If the consumer stops here, the connection is closed.
    void reader.cancel().catch(() => {});
  }
}
