// Takes the body of a whole answer from its engine, within the bounds of size.
import type { BodySink } from "../domain/body-source.ts";
import type { Cancellation } from "../domain/cancellation.ts";
import { GatewayError } from "../domain/errors.ts";
import type { Dispatched } from "./attempt.ts";

/** A batch of 2,048 long embeddings in JSON comes to about 80 MB. */
const maxAnswerBytes = 128 * 1024 * 1024;
const nothing = new Uint8Array(0);

/** Mostly all of it is here at once: it often comes with its head. */
export class WholeBody implements BodySink {
  readonly #dispatched: Dispatched;
  readonly #cancellation: Cancellation;
  #first: Uint8Array | undefined;
  /** All pieces, where there is more than one. */
  #pieces: Uint8Array[] | undefined;
  #length = 0;
  #ended = false;
  #failure: GatewayError | undefined;
  #waiting: PromiseWithResolvers<Uint8Array> | undefined;

  constructor(dispatched: Dispatched, cancellation: Cancellation) {
    this.#dispatched = dispatched;
    this.#cancellation = cancellation;
  }

  /** Throws, or rejects with, a GatewayError or the reason of the cancellation, which also stops the engine. */
  read(): Uint8Array | Promise<Uint8Array> {
    const { body } = this.#dispatched.response;
    if (this.#cancellation.cancelled) {
      body.cancel();
      throw this.#cancellation.reason;
    }
    body.flow(this);
    if (this.#failure) throw this.#failure;
    if (this.#ended) return this.#whole;
    this.#waiting = Promise.withResolvers();
    this.#cancellation.onCancel(this.#cancelled);
    return this.#waiting.promise;
  }

  data(bytes: Uint8Array): void {
    this.#dispatched.firstByte();
    this.#length += bytes.byteLength;
    if (this.#length > maxAnswerBytes) {
      this.#dispatched.response.body.cancel();
      this.#failed(malformed(`more than ${maxAnswerBytes} bytes`));
    } else if (!this.#first) {
      this.#first = bytes;
    } else if (this.#pieces) {
      this.#pieces.push(bytes);
    } else {
      this.#pieces = [this.#first, bytes];
    }
  }

  end(): void {
    this.#ended = true;
    if (!this.#waiting) return;
    this.#cancellation.off(this.#cancelled);
    this.#waiting.resolve(this.#whole);
  }

  fail(error: unknown): void {
    this.#failed(
      error instanceof GatewayError
        ? error
        : new GatewayError("upstream_error", "The model server broke off in the middle of the answer.", {
            cause: error,
          }),
    );
  }

  get #whole(): Uint8Array {
    return this.#pieces ? Buffer.concat(this.#pieces, this.#length) : (this.#first ?? nothing);
  }

  #failed(failure: GatewayError): void {
    this.#failure = failure;
    if (!this.#waiting) return;
    this.#cancellation.off(this.#cancelled);
    this.#waiting.reject(failure);
  }

  readonly #cancelled = (): void => {
    this.#dispatched.response.body.cancel();
    this.#waiting?.reject(this.#cancellation.reason);
  };
}

/** `detail` is for the log. */
export function malformed(detail: string): GatewayError {
  return new GatewayError("upstream_error", "The model server sent an answer that cannot be read.", { detail });
}
