// The body of a streamed answer: takes what generations tell, writes it while the model works on the next token, and
// makes them wait for a client that does not read.
import type { Batching } from "./batching.ts";

/** Beyond so much text that nobody has taken yet, the generations wait. */
const mostUnread = 16 * 1024;

/**
 * A stream is written at most so often, and at once where it was silent for so long: the first text never waits. What a
 * fast model writes within the time of a screen's frame goes out together; one write a token would cost the machine,
 * gateway and client included, a good part of the time in which the model makes that token.
 */
const shortestPauseMs = 10;

export class EventStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #batching: Batching;
  readonly #encoder = new TextEncoder();
  #unwritten: (() => string)[] = [];
  /** undefined: only what opens the stream. */
  #writtenMs: number | undefined;
  #text = "";
  #ended = false;
  #left = false;
  #cancelled = false;
  /** Present while the reader waits for text. */
  #reader: (() => void) | undefined;
  /** Present while generations wait for the reader. */
  #room: PromiseWithResolvers<void> | undefined;
  readonly #write = () => this.#writeAll();

  /** @param onLeave the client has gone */
  constructor(batching: Batching, onLeave: () => void) {
    this.#batching = batching;
    this.body = new ReadableStream<Uint8Array>(
      {
        pull: (controller) => this.#pull(controller),
        cancel: () => {
          this.#cancelled = true;
          this.leave();
          onLeave();
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** What is known before anything is generated; it does not make the first text wait. */
  open(text: string): void {
    this.#text = text;
    this.#reader?.();
  }

  /** `write` is called later, in order. A promise: wait for it before more is generated. */
  push(write: () => string): Promise<void> | undefined {
    if (this.#left) return undefined;
    this.#unwritten.push(write);
    if (this.#unwritten.length === 1) this.#planWrite();
    if (this.#text.length <= mostUnread) return undefined;
    this.#room ??= Promise.withResolvers();
    return this.#room.promise;
  }

  /** No more comes. */
  end(): void {
    this.#ended = true;
    this.#writeAll();
  }

  /** Nobody reads any more: whatever comes is dropped, and nothing waits. */
  leave(): void {
    this.#left = true;
    this.#unwritten = [];
    this.#text = "";
    this.end();
    this.#room?.resolve();
  }

  #planWrite(): void {
    // Somebody waits for the first text; the model can wait for it to be written, once.
    if (this.#writtenMs === undefined) {
      this.#writeAll();
      return;
    }
    const pauseMs = this.#writtenMs + shortestPauseMs - performance.now();
    if (pauseMs > 0) setTimeout(this.#write, pauseMs);
    else this.#batching.afterwards(this.#write);
  }

  #writeAll(): void {
    if (this.#unwritten.length > 0) this.#writtenMs = performance.now();
    for (const write of this.#unwritten) this.#text += write();
    this.#unwritten = [];
    if (this.#text !== "" || this.#ended) this.#reader?.();
  }

  #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> | undefined {
    if (this.#text !== "" || this.#ended) {
      this.#deliver(controller);
      return undefined;
    }
    return new Promise((resolve) => {
      this.#reader = () => {
        this.#reader = undefined;
        this.#deliver(controller);
        resolve();
      };
    });
  }

  #deliver(controller: ReadableStreamDefaultController<Uint8Array>): void {
    if (this.#text !== "") controller.enqueue(this.#encoder.encode(this.#text));
    this.#text = "";
    if (this.#ended && !this.#cancelled) controller.close();
    this.#room?.resolve();
    this.#room = undefined;
  }
}
