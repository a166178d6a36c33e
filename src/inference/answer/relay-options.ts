// What a relay is given, and whom it tells.

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

/** When to tell of a piece again: at whichever comes first. */
export interface PieceDue {
  /** Monotonic milliseconds. */
  dueMs: number;
  /** More pieces than so many were delivered. */
  duePieces: number;
}

/** Ends a stream where a quota is spent. */
export interface StreamStop {
  /** Whether as many bytes as these cannot bring it to where it has to be looked at. */
  isFar(observed: StreamObservation, bytes: number): boolean;
  /** A promise where it has to wait until that is known, and then be asked again. */
  check(observed: StreamObservation): "goes_on" | "spent" | Promise<void>;
  /** What its client is told of it. Called once, when it is spent. */
  mark(): StopMark;
}

export interface RelayOptions {
  /** Undefined where no quota ends it. */
  readonly stop: StreamStop | undefined;
  /** Goes on where a model server breaks off; left out, or undefined: nobody does. */
  readonly continuation?: Continuation | undefined;
  /** Undefined where no guardrail looks at the answer. */
  readonly guard?: TextGuard | undefined;
  readonly request: DecodedRequest;
  /** The engine's response, perhaps still on its way; rejects when none came. */
  readonly source: MaybePromise<Dispatched> | Dispatched;
  readonly completion: AnswerNames;
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Silence towards the client after which it gets a comment. */
  readonly heartbeatMs: number;
  /** Where it stands while no engine has it yet, to be told in a comment; left out, or undefined: it does not wait. */
  readonly standing?: QueuePosition | undefined;
  /** Monotonic milliseconds since when the client has heard nothing; left out: from now on. */
  readonly sinceMs?: number;
  /** Called before the first event of an answer is sent: what the engine sends is an answer. */
  answers(dispatched: Dispatched): void;
  /**
   * Called once where the relay has no client yet, when there is something to send to it; `begin` may be called at once. Before
   * that nothing is begun towards the client.
   */
  begins(begin: (client: ClientStream) => void): void;
  /** Called in place of `begins`, once `onEnd` has settled, where the stream ended with an error before there was anything to send. */
  unbegun(error: unknown): void;
  /** Asks another deployment in place of one that gave no answer; see `Dispatched.another`. */
  another(dispatched: Dispatched, error: unknown, isCut: boolean): MaybePromise<Dispatched>;
  renderError(error: GatewayError): string;
  /**
   * Called with what was seen so far, before the client gets a piece of it that is not the last, where one is due: it sets
   * when the next one is.
   */
  onPiece(observed: StreamObservation, due: PieceDue): void;
  /** Whether somebody keeps the answer: then `record` is called with events for the client. */
  readonly recorded: boolean;
  record(events: string): void;
  /** Whether somebody keeps what its last events tell alone: then `recordEnd` is called with those, an error's included. */
  readonly recordsEnd: boolean;
  recordEnd(events: string): void;
  /** Called once what `onEnd` returned has settled: returns the last events as the client gets them. */
  truthful(events: string): string;
  /**
   * Called once, before the client gets the end: without an error when the stream was delivered whole. What is still to
   * be sent waits for what it returns.
   */
  onEnd(observed: StreamObservation, error: unknown): MaybePromise<void>;
  /** The client's side: cancelled when it left. */
  readonly clientGone: Cancellation;
  /** On whose account bytes are held for it. */
  readonly memoryAccount: MemoryAccount;
  readonly stopping: Stopping;
  /** Stops the engine's work while its response is still on its way. */
  abort(): void;
}
