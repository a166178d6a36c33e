// An answer that is no JSON and no stream of events: its bytes go to the client as they come, and are held by nobody.
import { nowhere } from "../../base/bag.ts";
import type { BodySink } from "../../base/bytes/body-source.ts";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { CancelListener } from "../../base/cancellation.ts";
import { BlamelessError, GatewayError } from "../../base/errors.ts";
import { type Eventual, whenSettled } from "../../base/later.ts";
import { usageOfTask } from "../../dialects/task/task-usage.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { PassedBytes } from "../call.ts";
import type { DecodedRequest } from "../decoded-request.ts";
import type { Dispatched } from "../routing/attempt.ts";
import { type Stoppable, stoppingError } from "../stopping.ts";
import type { RelayedRequest } from "./relayed-answer.ts";

/** A client that takes nothing for this long is cut off: what it holds back is a place at the model. */
const stalledReaderMs = 60_000;
/**
 * What is of another kind is not said to be that: nothing of a model server is to be shown as a page. All of the field is
 * looked at, as browsers go by the last of several types in it.
 */
const passedTypes =
  /^(?:audio\/[\w.+-]+|text\/plain|text\/vtt|application\/(?:x-subrip|octet-stream))(?:[ \t]*;[ \t]*[\w-]+=(?:[\w.+-]+|"[\w.+, -]*"))*$/i;
const unknownType = "application/octet-stream";

export class PassedAnswer implements PassedBytes {
  readonly contentType: string;
  readonly #dispatched: Dispatched;
  readonly #open: RelayedRequest;

  constructor(dispatched: Dispatched, open: RelayedRequest) {
    const said = dispatched.response.headers.get("content-type") ?? unknownType;
    this.contentType = passedTypes.test(said) ? said : unknownType;
    this.#dispatched = dispatched;
    this.#open = open;
  }

  begin(client: ClientStream): void {
    // The way itself listens, and stops what works for the request.
    this.#open.call.left.off(this.#open);
    new Passing(client, this.#dispatched, this.#open).start();
  }
}

class Passing implements BodySink, CancelListener, Stoppable {
  inBag = nowhere;
  readonly #client: ClientStream;
  readonly #dispatched: Dispatched;
  readonly #open: RelayedRequest;
  readonly #usageSoFar: () => TokenUsage;
  #hasBegun = false;
  #isOver = false;
  #error: unknown;
  /** While the client is behind. */
  #stalled: ReturnType<typeof setTimeout> | undefined;

  constructor(client: ClientStream, dispatched: Dispatched, open: RelayedRequest) {
    this.#client = client;
    this.#dispatched = dispatched;
    this.#open = open;
    this.#usageSoFar = () => usageAsAsked(open.request);
  }

  start(): void {
    const { call, deps } = this.#open;
    call.left.onCancel(this);
    if (this.#isOver) return;
    deps.stopping.add(this);
    this.#client.onDrain = () => this.#caughtUp();
    this.#dispatched.response.body.flow(this);
  }

  data({ buffer, start, end }: ByteSpan): void {
    this.piece(buffer, start, end);
  }

  piece(bytes: Buffer, start: number, end: number): void {
    if (this.#isOver) return;
    const { meter, trace, promptTokens } = this.#open;
    if (!this.#hasBegun) {
      this.#hasBegun = true;
      this.#dispatched.firstByte();
      trace?.firstToken();
    }
    // What dies now has begun to be answered: the request is in the ledger as that.
    meter.delivered(promptTokens, this.#usageSoFar);
    if (!this.#client.writeAround("", bytes, start, end, "") && !this.#isOver) this.#fellBehind();
  }

  end(): void {
    if (!this.#isOver) this.#finish(undefined);
  }

  fail(error: unknown): void {
    if (this.#isOver) return;
    const shown =
      error instanceof GatewayError
        ? error
        : new GatewayError("upstream_error", "The model server broke off in the middle of the answer.", {
            cause: error,
          });
    this.#finish(shown);
  }

  /** The client left, or was cut off. */
  cancelled(): void {
    const { reason } = this.#open.call.left;
    this.#stop(reason instanceof GatewayError ? reason : new DOMException("The client left", "AbortError"));
  }

  stop(): void {
    this.#stop(stoppingError());
  }

  #stop(error: unknown): void {
    if (this.#isOver) return;
    this.#dispatched.response.body.cancel();
    this.#finish(error);
  }

  #fellBehind(): void {
    if (this.#stalled !== undefined) return;
    this.#dispatched.response.body.pause();
    this.#stalled = setTimeout(
      () => this.#stop(new DOMException("The client stopped reading", "AbortError")),
      stalledReaderMs,
    );
  }

  #caughtUp(): void {
    if (this.#isOver || this.#stalled === undefined) return;
    clearTimeout(this.#stalled);
    this.#stalled = undefined;
    this.#dispatched.response.body.resume();
  }

  /** The client gets the end once it is on record; of what broke off, a connection that does as well. */
  #finish(error: unknown): void {
    const { call, deps, cancellation } = this.#open;
    this.#isOver = true;
    this.#error = error;
    clearTimeout(this.#stalled);
    call.left.off(this);
    deps.stopping.remove(this);
    if (error !== undefined) cancellation.cancel();
    this.#dispatched.done(error instanceof GatewayError && !(error instanceof BlamelessError));
    whenSettled(this.#recorded(error), onRecorded, onRecorded, this);
  }

  /** Where that fails, the client must get its end all the same. */
  #recorded(error: unknown): Eventual<void> {
    try {
      const isNothing = error !== undefined && !this.#hasBegun;
      return isNothing ? this.#open.endedWithoutAnswer(error) : this.#open.ended(this.#usageSoFar(), error);
    } catch (fault) {
      return Promise.reject(fault);
    }
  }

  recorded(): void {
    if (this.#error === undefined) this.#client.end();
    else this.#client.abort();
  }
}

function onRecorded(_: unknown, passing: Passing): void {
  passing.recorded();
}

/** Nothing in such an answer tells any. */
function usageAsAsked(request: DecodedRequest): TokenUsage {
  return usageOfTask(undefined, request.units, request, 0);
}
