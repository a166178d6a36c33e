// The events of a streamed answer.
import { SseParser } from "../domain/sse.ts";

/** The data of each event of a `text/event-stream`. Throws on an event beyond 8 MiB. */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const parser = new SseParser();
  for await (const bytes of body) yield* parser.push(bytes);
}
