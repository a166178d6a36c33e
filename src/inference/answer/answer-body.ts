// Takes the body of a whole answer from its engine, within the bounds of size.

import type { BodySink } from "../../base/bytes/body-source.ts";
import { ByteCollector } from "../../base/bytes/byte-collector.ts";
import { type ByteSpan, noBytes } from "../../base/bytes/byte-span.ts";
import { type Holder, heldBytes, NoRoomError } from "../../base/bytes/held-bytes.ts";
import type { CancelListener, Cancellation } from "../../base/cancellation.ts";
import { GatewayError } from "../../base/errors.ts";
import { Later } from "../../base/later.ts";
import { mostAnswerBytes, usualAnswerBytes } from "../../dialects/answer-bound.ts";
import type { DecodedRequest } from "../decoded-request.ts";
import type { Dispatched } from "../routing/attempt.ts";

/** Mostly all of it is here at once: it often comes with its head. It is held until `release`, or until it fails. */
export class WholeBody extends Later<ByteSpan> implements BodySink, CancelListener {
  readonly #dispatched: Dispatched;
  readonly #cancellation: Cancellation;
  readonly #request: DecodedRequest;
  readonly #holder: Holder;
  #first = noBytes;
  /** All of it, where there is more than one piece. */
  #collected: ByteCollector | undefined;
  #mostBytes = usualAnswerBytes;
  #over = false;

  /** Settles with all of it, a GatewayError, or the reason of the cancellation, which also stops the engine. */
  constructor(dispatched: Dispatched, request: DecodedRequest, holder: Holder, cancellation: Cancellation) {
    super();
    this.#dispatched = dispatched;
    this.#request = request;
    this.#holder = holder;
    this.#cancellation = cancellation;
    cancellation.onCancel(this);
    if (!cancellation.cancelled) dispatched.response.body.flow(this);
  }

  data(bytes: ByteSpan): void {
    if (this.#over) return;
    this.#dispatched.firstByte();
    const length = (this.#collected ?? this.#first).length + bytes.length;
    const refusal = this.#isTooLong(length) ? tooLong(this.#mostBytes) : this.#take(bytes, length);
    if (!refusal) return;
    this.#dispatched.response.body.cancel();
    this.#failed(refusal);
  }

  end(): void {
    this.#cancellation.off(this);
    this.resolve(this.#collected?.joined() ?? this.#first);
  }

  /** Nobody needs it any more. */
  release(): void {
    if (this.#collected) this.#collected.release();
    else if (this.#first.length > 0) this.#holder.release("answers", this.#first.length);
    this.#first = noBytes;
    this.#collected = undefined;
  }

  #take(bytes: ByteSpan, length: number): GatewayError | undefined {
    const refusal = this.#hold(bytes);
    return refusal && length > heldBytes.mostBytesOfKey ? neverHeld(heldBytes.mostBytesOfKey) : refusal;
  }

  #hold(bytes: ByteSpan): GatewayError | undefined {
    if (this.#first.length > 0) {
      this.#collected ??= new ByteCollector("answers", this.#holder, this.#first);
      return this.#collected.add(bytes);
    }
    const refusal = this.#holder.take("answers", bytes.length);
    if (!refusal) this.#first = bytes;
    return refusal;
  }

  #isTooLong(length: number): boolean {
    if (length <= this.#mostBytes) return false;
    this.#mostBytes = mostAnswerBytes(this.#request, this.#dispatched.model);
    return length > this.#mostBytes;
  }

  fail(error: unknown): void {
    this.#failed(
      error instanceof GatewayError
        ? error
        : new GatewayError(
            "upstream_error",
            "The model server broke off in the middle of the answer. Retry your request.",
            {
              cause: error,
            },
          ),
    );
  }

  cancelled(): void {
    this.#over = true;
    this.release();
    this.#dispatched.response.body.cancel();
    this.reject(this.#cancellation.reason);
  }

  #failed(failure: GatewayError): void {
    this.#over = true;
    this.release();
    this.#cancellation.off(this);
    this.reject(failure);
  }
}

function tooLong(mostBytes: number): GatewayError {
  return new GatewayError(
    "upstream_error",
    "The model server sent more than the request can use. Where that is meant to be, ask for less at once: fewer inputs, or fewer choices.",
    { detail: `more than ${mostBytes} bytes` },
  );
}

/** Asked again, it would be as long, and the model server would have done all of it once more. */
function neverHeld(mostBytes: number): GatewayError {
  return new NoRoomError(
    "upstream_error",
    `The answer is longer than ${mostBytes} bytes, the most that one key may hold here. Ask for less at once, embeddings with encoding_format base64, or have an operator raise limits.held_bytes.`,
    { shouldRetry: false },
  );
}
