// The body of a streamed answer: collects events of generations, writes them while the model works on the next token,
// and makes generations wait for a client that does not read.
import type { Frames } from "./frames.ts";

/** The unread text, in characters, beyond which generations wait. */
const maxUnread = 16 * 1024;

export class EventStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #frames: Frames;
  readonly #encoder = new TextEncoder();
  #unwritten: (() => string)[] = [];
  /** True if anything beyond the opening of the stream was pushed. */
  #begun = false;
  #text = "";
  #ended = false;
  #isReaderGone = false;
  #cancelled = false;
  /** A callback that is set while the reader waits for text. */
  #reader: (() => void) | undefined;
  /** A promise that is set while generations wait for the reader. */
  #room: PromiseWithResolvers<void> | undefined;
  readonly #write = () => this.#writeAll();

  /** `onLeave` is called when the client has gone. */
  constructor(frames: Frames, onLeave: () => void) {
    this.#frames = frames;
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

  /** Opens the stream with what is known before the generation. It does not delay the first text. */
  open(text: string): void {
    this.#text = text;
    this.#reader?.();
  }

  /**
   * Adds text to the stream. `write` creates the text; it is called in order, at once for the first text and later for
   * all others. If a promise is returned, wait for it before generating more.
   */
  push(write: () => string): Promise<void> | undefined {
    if (this.#isReaderGone) return undefined;
    this.#unwritten.push(write);
    if (!this.#begun) this.#begin();
    else if (this.#unwritten.length === 1) this.#frames.add(this.#write);
    if (this.#text.length <= maxUnread) return undefined;
    this.#room ??= Promise.withResolvers();
    return this.#room.promise;
  }

  /** Ends the stream: no more text follows. */
  end(): void {
    this.#ended = true;
    this.#writeAll();
  }

  /** Call this method once the reader has left. Further text is dropped, and nothing waits. */
  leave(): void {
    this.#isReaderGone = true;
    this.#unwritten = [];
    this.#text = "";
    this.end();
    this.#room?.resolve();
  }

  /**
   * Writes the first text at once. The client waits for that text, so the model waits for it to be written, this once.
   */
  #begin(): void {
    this.#begun = true;
    this.#writeAll();
  }

  #writeAll(): void {
    const writes = this.#unwritten;
    this.#unwritten = [];
    for (const write of writes) this.#text += write();
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
