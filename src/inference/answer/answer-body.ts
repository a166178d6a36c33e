// Receives the body of a whole answer from its engine, within limits of size.

import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import { bufferedBytes, type MemoryAccount, NoRoomError } from "../../base/bytes/buffered-bytes.ts";
import { ByteCollector, mostBlockBytes as maxBlockBytes } from "../../base/bytes/byte-collector.ts";
import { type ByteSpan, noBytes } from "../../base/bytes/byte-span.ts";
import type { CancelListener, Cancellation } from "../../base/cancellation.ts";
import { Deferred } from "../../base/deferred.ts";
import { GatewayError } from "../../base/errors.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { defaultAnswerBytes, maxAnswerBytes } from "../../requests/dialects/answer-bound.ts";
import type { Dispatched } from "../routing/attempt.ts";
import { brokeOff } from "./engine-refusal.ts";

/** Answers above this size may be forwarded to the client while they arrive. */
const longAnswerBytes = 4 * 1024 * 1024;

/** Can take over a long answer. */
export interface LongAnswerTaker {
  readonly takesLongAnswers: boolean;
  /** Returns a sink for the part of the answer after `first`; undefined if the whole answer must be read first. */
  longAnswer(first: ByteSpan, rest: BodySource): BodySink | undefined;
}

/**
 * A whole body. In most cases it arrives in one piece, often together with its head. Its bytes stay counted until
 * `release` or a failure.
 */
export class WholeBody extends Deferred<ByteSpan> implements BodySink, CancelListener {
  readonly #dispatched: Dispatched;
  readonly #cancellation: Cancellation;
  readonly #request: DecodedRequest;
  readonly #memoryAccount: MemoryAccount;
  #first = noBytes;
  /** Collects the body if it arrives in more than one piece. */
  #collected: ByteCollector | undefined;
  #maxBytes = defaultAnswerBytes;
  #over = false;
  readonly #taker: LongAnswerTaker | undefined;
  #isLong = false;
  /** The sink that has taken over the answer. */
  #long: BodySink | undefined;

  /**
   * Settles with the whole body, a GatewayError, or the reason of the cancellation, which also stops the engine.
   * Never settles if `taker` takes over.
   */
  constructor(
    dispatched: Dispatched,
    request: DecodedRequest,
    memoryAccount: MemoryAccount,
    cancellation: Cancellation,
    taker?: LongAnswerTaker,
  ) {
    super();
    this.#taker = taker;
    this.#dispatched = dispatched;
    this.#request = request;
    this.#memoryAccount = memoryAccount;
    this.#cancellation = cancellation;
    cancellation.onCancel(this);
    if (!cancellation.cancelled) dispatched.response.body.flow(this);
  }

  data(bytes: ByteSpan): void {
    if (this.#long) {
      this.#long.data(bytes);
      return;
    }
    if (this.#over) return;
    this.#dispatched.firstByte();
    const length = (this.#collected ?? this.#first).length + bytes.length;
    const refusal = this.#isTooLong(length) ? tooLong(this.#maxBytes) : this.#take(bytes, length);
    if (!refusal) {
      if (length > longAnswerBytes && !this.#isLong) this.#handOver();
      return;
    }
    this.#dispatched.response.body.cancel();
    this.#failed(refusal);
  }

  /** The bytes so far stay counted until the taker passes them on. Meanwhile the engine is paused. */
  #handOver(): void {
    this.#isLong = true;
    if (!this.#taker?.takesLongAnswers) return;
    const { body } = this.#dispatched.response;
    const first = this.#collected?.joined() ?? this.#first;
    const rest: BodySource = {
      flow() {},
      pause: () => body.pause(),
      resume: () => {
        this.release();
        body.resume();
      },
      cancel: () => {
        this.release();
        body.cancel();
      },
    };
    body.pause();
    try {
      this.#long = this.#taker.longAnswer(first, rest);
    } catch (error) {
      body.cancel();
      this.fail(error);
      return;
    }
    if (this.#long) {
      this.#cancellation.off(this);
      return;
    }
    this.#collected?.release();
    if (this.#collected) this.#memoryAccount.take("answers", first.length);
    this.#collected = new ByteCollector("answers", this.#memoryAccount, first);
    body.resume();
  }

  end(): void {
    if (this.#long) {
      this.#long.end();
      return;
    }
    this.#cancellation.off(this);
    this.resolve(this.#collected?.joined() ?? this.#first);
  }

  /** Frees the body after its last use. */
  release(): void {
    if (this.#collected) this.#collected.release();
    else if (this.#first.length > 0) this.#memoryAccount.release("answers", this.#first.length);
    this.#first = noBytes;
    this.#collected = undefined;
  }

  #take(bytes: ByteSpan, length: number): GatewayError | undefined {
    const refusal = this.#hold(bytes);
    const { maxBytesOfKey } = bufferedBytes;
    // The last block may be larger than the bytes that arrived.
    const needed = this.#request.bodyBytes + length + maxBlockBytes;
    return refusal && needed > maxBytesOfKey ? neverFits(maxBytesOfKey) : refusal;
  }

  #hold(bytes: ByteSpan): GatewayError | undefined {
    if (this.#first.length > 0) {
      this.#collected ??= new ByteCollector("answers", this.#memoryAccount, this.#first);
      return this.#collected.add(bytes);
    }
    const refusal = this.#memoryAccount.take("answers", bytes.length);
    if (!refusal) this.#first = bytes;
    return refusal;
  }

  #isTooLong(length: number): boolean {
    if (length <= this.#maxBytes) return false;
    this.#maxBytes = maxAnswerBytes(this.#request, this.#dispatched.model);
    return length > this.#maxBytes;
  }

  fail(error: unknown): void {
    if (this.#long) this.#long.fail(error);
    else this.#failed(error instanceof GatewayError ? error : brokeOff(error, this.#dispatched.deployment.engine));
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

function tooLong(maxBytes: number): GatewayError {
  return new GatewayError(
    "upstream_error",
    "The model server sent more than the request can use. Where that is meant to be, ask for less at once: fewer inputs, or fewer choices.",
    { detail: `more than ${maxBytes} bytes` },
  );
}

/** Another attempt would give an answer of the same length, and the model server would repeat all of its work. */
function neverFits(maxBytes: number): GatewayError {
  return new NoRoomError(
    "upstream_error",
    `The answer and its request are longer than ${maxBytes} bytes, the most that one key may hold here. Ask for less at once, embeddings with encoding_format base64, or have an operator raise limits.held_bytes.`,
    { shouldRetry: false },
  );
}
