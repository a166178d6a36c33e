// The events of a streamed answer.
import { SseParser } from "../../base/text/sse.ts";

/**
 * Yields the data of each event of a `text/event-stream`. Throws for an event longer than 8 MiB. Once `signal` is
 * aborted, throws its reason.
 */
export async function* readEvents(body: ReadableStream<Uint8Array>, signal: AbortSignal): AsyncGenerator<string> {
  const parser = new SseParser();
  const reader = body.getReader();
  // Aborting the request does not always end a read in progress.
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
    // Closes the connection if the consumer stops here.
    void reader.cancel().catch(() => {});
  }
}
