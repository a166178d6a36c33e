// Receives the complete body of an engine's answer, up to a maximum size.

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

/** Bytes of an answer above which it may be forwarded while it arrives. */
const longAnswerBytes = 4 * 1024 * 1024;

/** Code that can forward a long answer while it is still arriving. */
export interface LongAnswerTaker {
  readonly takesLongAnswers: boolean;
  /**
   * Returns a sink for the bytes that follow `first`. Returns undefined if the answer must be complete before it is
   * sent.
   */
  longAnswer(first: ByteSpan, rest: BodySource): BodySink | undefined;
}

/**
 * A promise for a complete body, which often arrives in one piece. Its bytes count on the memory account until
 * `release` is called or the body fails.
 */
export class WholeBody extends Deferred<ByteSpan> implements BodySink, CancelListener {
  readonly #dispatched: Dispatched;
  readonly #cancellation: Cancellation;
  readonly #request: DecodedRequest;
  readonly #memoryAccount: MemoryAccount;
  #first = noBytes;
  /** The pieces of the body, if it has arrived in more than one. */
  #collected: ByteCollector | undefined;
  #maxBytes = defaultAnswerBytes;
  #over = false;
  readonly #taker: LongAnswerTaker | undefined;
  #isLong = false;
  /** The sink through which `taker` forwards a long answer. Undefined for other answers. */
  #long: BodySink | undefined;

  /**
   * Resolves with the body. Rejects with a GatewayError, or with the reason of the cancellation. A cancellation also
   * stops the engine. If `taker` forwards the answer, the promise stays pending.
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

  /**
   * Pauses reading from the engine, and offers the answer to the taker. The bytes so far count on the memory account
   * until the taker resumes.
   */
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

  /** Frees the memory of the body. Call this after its last use. */
  release(): void {
    if (this.#collected) this.#collected.release();
    else if (this.#first.length > 0) this.#memoryAccount.release("answers", this.#first.length);
    this.#first = noBytes;
    this.#collected = undefined;
  }

  #take(bytes: ByteSpan, length: number): GatewayError | undefined {
    const refusal = this.#hold(bytes);
    const { maxBytesOfKey } = bufferedBytes;
    // The last memory block may be larger than the bytes in it, so its maximum size is added.
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

/**
 * Returns the error for an answer that exceeds the memory limit of a key. The request is not retried, because another
 * answer would be as long.
 */
function neverFits(maxBytes: number): GatewayError {
  return new NoRoomError(
    "upstream_error",
    `The answer and its request are longer than ${maxBytes} bytes, the most that one key may hold here. Ask for less at once, embeddings with encoding_format base64, or have an operator raise limits.held_bytes.`,
    { shouldRetry: false },
  );
}
