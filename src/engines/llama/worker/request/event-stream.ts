// The body of a streamed answer. Text is written while the model computes the next token, and generations wait
// if the client does not read.
import type { Frames } from "./frames.ts";

/** The unread text, in characters, beyond which generations wait. */
const maxUnread = 16 * 1024;

export class EventStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #frames: Frames;
  readonly #encoder = new TextEncoder();
  #unwritten: (() => string)[] = [];
  /** True after the first call of `push`. Text from `open` does not count. */
  #begun = false;
  #text = "";
  #ended = false;
  #isReaderGone = false;
  #cancelled = false;
  /** Set while the reader waits for text. Call it to deliver the text. */
  #reader: (() => void) | undefined;
  /** Set while generations wait for the reader. */
  #room: PromiseWithResolvers<void> | undefined;
  readonly #write = () => this.#writeAll();

  /** `onLeave` is called when the client closes the connection. */
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

  /** Sends text that is known before the generation starts. The first generated text is still sent without delay. */
  open(text: string): void {
    this.#text = text;
    this.#reader?.();
  }

  /**
   * Adds text to the stream. `write` creates the text: immediately for the first text, later and in order for others.
   * If a promise is returned, await it before generating more.
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

  /** Ends the stream after the text so far. */
  end(): void {
    this.#ended = true;
    this.#writeAll();
  }

  /** Call this when the client has left. Later text is dropped, and `push` never makes generations wait. */
  leave(): void {
    this.#isReaderGone = true;
    this.#unwritten = [];
    this.#text = "";
    this.end();
    this.#room?.resolve();
  }

  /**
   * Writes the first text immediately, because the client waits for it. The model pauses only for this write; later
   * text is written while the model computes.
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
