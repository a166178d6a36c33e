// The options and callbacks of a relay, which forwards a stream.

import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import type { GatewayError } from "../../base/errors.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import type { AnswerNames, StopMark, StreamObservation } from "../../requests/dialects/answer.ts";
import type { TextGuard } from "../../requests/dialects/texts/text-guard.ts";
import type { Continuation } from "../continuation/continuation.ts";
import type { Dispatched } from "../routing/attempt.ts";
import type { QueuePosition } from "../routing/capacity.ts";
import type { Stoppable, Stopping } from "../stopping.ts";

/** The time of the next call of `onPiece`. The call is due as soon as one of the two limits is reached. */
export interface PieceDue {
  /** Time in monotonic milliseconds. */
  dueMs: number;
  /** Number of delivered pieces above which the call is due. */
  duePieces: number;
}

/** Ends a stream once a quota is used up. */
export interface StreamStop {
  /** Reports whether the quota is so far from its end that no check is needed, even after this many more bytes. */
  isFar(observed: StreamObservation, bytes: number): boolean;
  /** Checks the quota. If it returns a promise, wait for the promise and call `check` again. */
  check(observed: StreamObservation): "goes_on" | "spent" | Promise<void>;
  /** Returns the mark that tells the client that a quota ended the stream. Called once. */
  mark(): StopMark;
}

export interface RelayOptions {
  /** Ends the stream once a quota is used up. Undefined if no quota can end it. */
  readonly stop: StreamStop | undefined;
  /** Continues the stream at another deployment if the model server breaks off. Undefined if that is not possible. */
  readonly continuation?: Continuation | undefined;
  /** Checks the text of the answer. Undefined if the answer has no guardrails. */
  readonly guard?: TextGuard | undefined;
  readonly request: DecodedRequest;
  /** The engine's response, or a promise for it. */
  readonly source: MaybePromise<Dispatched> | Dispatched;
  readonly completion: AnswerNames;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Milliseconds without output after which the client gets a keep-alive comment. */
  readonly heartbeatMs: number;
  /** The request's position in the queue, for comments while it waits. Undefined if the request does not wait. */
  readonly queuePosition?: QueuePosition | undefined;
  /** Time in monotonic milliseconds since which the client has received nothing. Default: now. */
  readonly sinceMs?: number;
  /** Called once the engine's output is known to be an answer, before the first event is sent. */
  answers(dispatched: Dispatched): void;
  /**
   * Called once when there is something to send but no client stream yet. Then call `begin` with the stream,
   * immediately or later.
   */
  begins(begin: (client: ClientStream) => void): void;
  /**
   * Called instead of `begins` if the stream failed before there was anything to send. `onEnd` has been called and has
   * settled before.
   */
  unbegun(error: unknown): void;
  /** Tries the next deployment after this one gave no answer. See `Dispatched.another`. */
  another(dispatched: Dispatched, error: unknown, isCut: boolean): MaybePromise<Dispatched>;
  renderError(error: GatewayError): string;
  /**
   * Called before the client gets a piece, at the times that the call itself sets in `due`. Not called for the last
   * piece.
   */
  onPiece(observed: StreamObservation, due: PieceDue): void;
  /** True if `record` must be called with the client's events. */
  readonly recorded: boolean;
  record(events: string): void;
  /** True if `recordEnd` must be called, with the last events only. These may be the events of an error. */
  readonly recordsEnd: boolean;
  recordEnd(events: string): void;
  /**
   * Called once after `onEnd` has settled. Returns the last events for the client, corrected if the answer was not
   * stored.
   */
  truthful(events: string): string;
  /**
   * Called once before the last events are sent. They wait for the returned promise. `error` is undefined if the stream
   * is complete.
   */
  onEnd(observed: StreamObservation, error: unknown): MaybePromise<void>;
  /** Cancelled when the client leaves. */
  readonly clientGone: Cancellation;
  /** The memory account for buffered output. */
  readonly memoryAccount: MemoryAccount;
  readonly stopping: Stopping;
  /** The principal that sent the request. If it is suspended, the stream stops. */
  readonly caller?: Stoppable["caller"];
  /** Stops the engine if its response has not arrived yet. */
  abort(): void;
}
