// The options of a relay, and its callbacks.

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
import type { Stopping } from "../stopping.ts";

/** When `onPiece` is called next: as soon as one of the two limits is reached. */
export interface PieceDue {
  /** Time in monotonic milliseconds. */
  dueMs: number;
  /** The call is due when more pieces than this were delivered. */
  duePieces: number;
}

/** Ends a stream when a quota is used up. */
export interface StreamStop {
  /** Reports whether this many further bytes cannot bring the answer to the point of the next check. */
  isFar(observed: StreamObservation, bytes: number): boolean;
  /** Checks the quota. Returns a promise if the result is not known yet; call again when it resolves. */
  check(observed: StreamObservation): "goes_on" | "spent" | Promise<void>;
  /** Returns the mark for the client. Called once, when the quota is used up. */
  mark(): StopMark;
}

export interface RelayOptions {
  /** Undefined if no quota ends the stream. */
  readonly stop: StreamStop | undefined;
  /** Continues the stream if a model server breaks off; absent or undefined if streams are not continued. */
  readonly continuation?: Continuation | undefined;
  /** Undefined if no guardrail checks the answer. */
  readonly guard?: TextGuard | undefined;
  readonly request: DecodedRequest;
  /** The engine's response, or a promise of it; rejects if there is none. */
  readonly source: MaybePromise<Dispatched> | Dispatched;
  readonly completion: AnswerNames;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Milliseconds without output after which the client gets a comment. */
  readonly heartbeatMs: number;
  /**
   * Position in the queue, reported in comments while no engine has the request. Absent or undefined if the request
   * does not wait.
   */
  readonly queuePosition?: QueuePosition | undefined;
  /** Monotonic time since which the client has received nothing. Default: now. */
  readonly sinceMs?: number;
  /** Called before the first event of an answer is sent, when the engine's output is known to be an answer. */
  answers(dispatched: Dispatched): void;
  /**
   * Called once when there is something to send and the relay has no client yet. `begin` may be called immediately. The
   * client's answer does not begin before this call.
   */
  begins(begin: (client: ClientStream) => void): void;
  /**
   * Called instead of `begins`, after `onEnd` has settled, if the stream ended with an error before there was anything
   * to send.
   */
  unbegun(error: unknown): void;
  /** Asks another deployment after one that gave no answer; see `Dispatched.another`. */
  another(dispatched: Dispatched, error: unknown, isCut: boolean): MaybePromise<Dispatched>;
  renderError(error: GatewayError): string;
  /**
   * Called with the observations so far, before the client gets a piece that is due and not the last. Sets in `due`
   * when the next call is due.
   */
  onPiece(observed: StreamObservation, due: PieceDue): void;
  /** True if the answer is recorded; `record` is then called with the client's events. */
  readonly recorded: boolean;
  record(events: string): void;
  /** True if only the last events are recorded; `recordEnd` is then called with these, including those of an error. */
  readonly recordsEnd: boolean;
  recordEnd(events: string): void;
  /** Called once, after the promise of `onEnd` has settled. Returns the last events as the client gets them. */
  truthful(events: string): string;
  /**
   * Called once, before the client gets the end. `error` is undefined if the stream was delivered completely. The
   * remaining output waits for the returned promise.
   */
  onEnd(observed: StreamObservation, error: unknown): MaybePromise<void>;
  /** Cancelled when the client left. */
  readonly clientGone: Cancellation;
  /** The account for buffered bytes. */
  readonly memoryAccount: MemoryAccount;
  readonly stopping: Stopping;
  /** Stops the engine while its response has not arrived. */
  abort(): void;
}
