// Takes the body of a whole answer from its engine, within the bounds of size.

import type { BodySink } from "../domain/body-source.ts";
import { ByteSpan, noBytes } from "../domain/byte-span.ts";
import type { CancelListener, Cancellation } from "../domain/cancellation.ts";
import { GatewayError } from "../domain/errors.ts";
import { Later } from "../domain/later.ts";
import type { Dispatched } from "./attempt.ts";

/** A batch of 2,048 long embeddings in JSON comes to about 80 MB. */
const maxAnswerBytes = 128 * 1024 * 1024;

/** Mostly all of it is here at once: it often comes with its head. */
export class WholeBody extends Later<ByteSpan> implements BodySink, CancelListener {
  readonly #dispatched: Dispatched;
  readonly #cancellation: Cancellation;
  #first: ByteSpan | undefined;
  /** All pieces, where there is more than one. */
  #pieces: ByteSpan[] | undefined;
  #length = 0;

  /** Settles with all of it, a GatewayError, or the reason of the cancellation, which also stops the engine. */
  constructor(dispatched: Dispatched, cancellation: Cancellation) {
    super();
    this.#dispatched = dispatched;
    this.#cancellation = cancellation;
    cancellation.onCancel(this);
    if (!cancellation.cancelled) dispatched.response.body.flow(this);
  }

  data(bytes: ByteSpan): void {
    this.#dispatched.firstByte();
    this.#length += bytes.length;
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
    this.#cancellation.off(this);
    this.resolve(this.#pieces ? ByteSpan.joined(this.#pieces, this.#length) : (this.#first ?? noBytes));
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

  cancelled(): void {
    this.#dispatched.response.body.cancel();
    this.reject(this.#cancellation.reason);
  }

  #failed(failure: GatewayError): void {
    this.#cancellation.off(this);
    this.reject(failure);
  }
}

/** `detail` is for the log. */
export function malformed(detail: string): GatewayError {
  return new GatewayError("upstream_error", "The model server sent an answer that cannot be read.", { detail });
}
