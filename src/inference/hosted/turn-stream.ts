// Reads the stream of one model call event by event, and sends the response's events to the client.
import { decodeByteText, encodeByteText } from "../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import { SseReader } from "../../base/text/sse.ts";
import type { HostedResponse } from "../../requests/dialects/response/hosted/hosted-response.ts";

export class TurnStream implements ClientStream {
  onDrain: (() => void) | undefined;
  readonly #client: ClientStream;
  readonly #response: HostedResponse;
  readonly #reader = new SseReader();
  readonly #over: () => void;
  /** True if the model's stream broke off. */
  isAborted = false;

  /** `over` is called once, at the end of the model's stream. */
  constructor(client: ClientStream, response: HostedResponse, over: () => void) {
    this.#client = client;
    this.#response = response;
    this.#over = over;
    client.onDrain = () => this.onDrain?.();
  }

  write(bytes: string): boolean {
    this.#reader.feed(bytes);
    let events = "";
    for (let data = this.#reader.next(); data !== undefined; data = this.#reader.next()) {
      events += this.#response.take(JSON.parse(decodeByteText(data)) as Record<string, unknown>);
    }
    // A comment, which is a line that starts with a colon, is passed on because it keeps the client's connection alive.
    return this.#client.write(events === "" && bytes.startsWith(":") ? bytes : encodeByteText(events));
  }

  writeAround(before: string, bytes: Buffer, start: number, end: number, after: string): boolean {
    return this.write(before + bytes.toString("latin1", start, end) + after);
  }

  end(last = ""): void {
    if (last !== "") this.write(last);
    this.#over();
  }

  abort(trailer?: string): void {
    this.isAborted = true;
    this.#client.abort(trailer);
    this.#over();
  }
}
