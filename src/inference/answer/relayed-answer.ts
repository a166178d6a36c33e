// Implements the relay's callbacks for a request, for example for metering and storing the answer.

import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { CancelListener, Cancellation } from "../../base/cancellation.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import type { GatewayError } from "../../base/errors.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { Meter } from "../../policy/meter.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import type { AnswerNames, StopMark, StreamObservation } from "../../requests/dialects/answer.ts";
import { streamUsage } from "../../requests/dialects/stream-usage.ts";
import type { TextGuard } from "../../requests/dialects/texts/text-guard.ts";
import { ContentBlocked } from "../../requests/dialects/texts/text-guard.ts";
import type { CachedRequest } from "../cache/cached-request.ts";
import type { InferenceAnswer, InferenceCall, InferenceDeps } from "../call.ts";
import type { Continuation } from "../continuation/continuation.ts";
import { blockedCode } from "../guarding.ts";
import type { Dispatched } from "../routing/attempt.ts";
import type { QueuePosition } from "../routing/capacity.ts";
import type { Stoppable, Stopping } from "../stopping.ts";
import type { AnswerRecorder } from "./answer-recorder.ts";
import { relay } from "./relay.ts";
import type { PieceDue, RelayOptions, StreamStop } from "./relay-options.ts";
import { spentCode, stopMark } from "./stop-mark.ts";

/** Bytes of text per token, for estimates. Each delivered piece counts as at least one token. */
const estimatedTokenBytes = 4;

/** The request that is being answered. */
export interface RelayedRequest extends AnswerNames, CancelListener, Stoppable {
  readonly call: Pick<InferenceCall<unknown>, "clientGone" | "memoryAccount" | "renderError" | "guarding">;
  readonly deps: Pick<InferenceDeps, "clock" | "heartbeatMs" | "stopping">;
  readonly request: DecodedRequest;
  readonly promptTokens: number;
  /** The request's position in the queue. Undefined if the request does not wait for a slot. */
  readonly queuePosition?: QueuePosition | undefined;
  readonly recorder: AnswerRecorder | undefined;
  readonly cached: CachedRequest | undefined;
  readonly trace: RequestTrace | undefined;
  readonly meter: Meter;
  /** True if a quota may end the answer early. */
  readonly isStoppable?: boolean;
  /** Undefined if the model's streams are not continued at another deployment. */
  readonly continuation?: Continuation | undefined;
  /** Cancels all work for the request. */
  readonly cancellation: Cancellation;
  /** Called once the engine's output is known to be an answer. */
  answers(dispatched: Dispatched): void;
  /** Called when the client's answer begins. See `RelayOptions`. */
  begins(answer: InferenceAnswer): void;
  unbegun(error: unknown): void;
  another(dispatched: Dispatched, error: unknown, isCut: boolean): MaybePromise<Dispatched>;
  /** Called when the answer has ended. `code` is the reason for an early end that is no error. */
  ended(usage: TokenUsage, error: unknown, code?: string): MaybePromise<void>;
  endedWithoutAnswer(error: unknown, reportedPrompt?: StreamObservation["reportedPrompt"]): MaybePromise<void>;
  /**
   * Called if the engine gave no answer and the client has received nothing. The request may then try another
   * deployment.
   */
  noAnswer(error: unknown, isCut: boolean): void;
}

/** Relays a stream to the client. If `source` is still pending, the client's answer begins immediately. */
export function relayTo(source: RelayOptions["source"], open: RelayedRequest): void {
  // From now on the relay, and not the request, is notified if the client leaves.
  open.call.clientGone.off(open);
  relay(new RelayedAnswer(source, open));
}

class RelayedAnswer implements RelayOptions, StreamStop {
  readonly source: RelayOptions["source"];
  readonly recorded: boolean;
  readonly recordsEnd: boolean;
  readonly #open: RelayedRequest;
  #isStopped = false;
  #usageSoFar: (() => TokenUsage) | undefined;
  /** The stream that `#usageSoFar` reads. If another engine begins the answer again, there is a new stream. */
  #observed: StreamObservation | undefined;

  constructor(source: RelayOptions["source"], open: RelayedRequest) {
    this.source = source;
    const { recorder, cached } = open;
    this.recorded = recorder?.wantsAllEvents === true || open.trace?.takesContent === true || cached?.collects === true;
    this.recordsEnd = recorder !== undefined && !recorder.wantsAllEvents;
    this.#open = open;
  }

  get stop(): StreamStop | undefined {
    return this.#open.isStoppable ? this : undefined;
  }

  get guard(): TextGuard | undefined {
    return this.#open.call.guarding?.answer;
  }

  isFar({ deliveredBytes, deliveredPieces, reported }: StreamObservation, bytes: number): boolean {
    const estimated = Math.max(deliveredPieces, Math.ceil(deliveredBytes / estimatedTokenBytes));
    const soFar = Math.max(estimated, reported?.completionTokens ?? 0);
    return soFar + Math.ceil(bytes / estimatedTokenBytes) < (this.#open.meter.stop?.dueTokens ?? 0);
  }

  check(observed: StreamObservation): "goes_on" | "spent" | Promise<void> {
    return this.#open.meter.checkStop(this.#usageOf(observed)());
  }

  mark(): StopMark {
    this.#isStopped = true;
    return stopMark(this.#open.meter.stop?.tightest);
  }

  get continuation(): Continuation | undefined {
    return this.#open.continuation;
  }

  get request(): DecodedRequest {
    return this.#open.request;
  }

  get completion(): AnswerNames {
    return this.#open;
  }

  get clock(): InferenceDeps["clock"] {
    return this.#open.deps.clock;
  }

  get queuePosition(): QueuePosition | undefined {
    return this.#open.queuePosition;
  }

  get heartbeatMs(): number {
    return this.#open.deps.heartbeatMs;
  }

  get sinceMs(): number {
    return this.#open.meter.startedMs;
  }

  get clientGone(): Cancellation {
    return this.#open.call.clientGone;
  }

  get memoryAccount(): MemoryAccount {
    return this.#open.call.memoryAccount;
  }

  get caller(): Stoppable["caller"] {
    return this.#open.caller;
  }

  get stopping(): Stopping {
    return this.#open.deps.stopping;
  }

  answers(dispatched: Dispatched): void {
    this.#open.answers(dispatched);
  }

  begins(begin: (client: ClientStream) => void): void {
    this.#open.begins(begin);
  }

  unbegun(error: unknown): void {
    this.#open.unbegun(error);
  }

  another(dispatched: Dispatched, error: unknown, isCut: boolean): MaybePromise<Dispatched> {
    return this.#open.another(dispatched, error, isCut);
  }

  renderError(error: GatewayError): string {
    return this.#open.call.renderError(error);
  }

  abort(): void {
    this.#open.cancellation.cancel();
  }

  record(events: string): void {
    const { recorder, trace, cached, call } = this.#open;
    if (cached?.collects) cached.add(events, call.memoryAccount);
    if (recorder?.wantsAllEvents) recorder.add(events);
    if (trace?.takesContent) trace.delivered(events);
  }

  recordEnd(events: string): void {
    this.#open.recorder?.add(events);
  }

  truthful(events: string): string {
    return this.#open.recorder?.truthful(events) ?? events;
  }

  onPiece(observed: StreamObservation, due: PieceDue): void {
    if (observed.deliveredBytes === 0) return;
    const { trace, meter, continuation } = this.#open;
    const promptTokens = this.#open.promptTokens + (continuation?.rereadTokens ?? 0);
    trace?.firstToken();
    meter.delivered(promptTokens + observed.deliveredPieces, this.#usageOf(observed));
    due.dueMs = meter.dueMs;
    due.duePieces = meter.dueTokens - promptTokens;
  }

  #usageOf(observed: StreamObservation): () => TokenUsage {
    if (this.#usageSoFar === undefined || this.#observed !== observed) {
      this.#usageSoFar = usageSoFar(this.#open.request, observed);
      this.#observed = observed;
    }
    return this.#usageSoFar;
  }

  onEnd(observed: StreamObservation, error: unknown): MaybePromise<void> {
    const open = this.#open;
    open.continuation?.ends(observed, error === undefined && !this.#isStopped);
    if (this.guard?.blockedBy !== undefined && (error === undefined || error instanceof ContentBlocked)) {
      return open.ended(streamUsage(open.request, observed, error === undefined), undefined, blockedCode);
    }
    if (error !== undefined && observed.deliveredBytes === 0 && !observed.reported) {
      return open.endedWithoutAnswer(error, observed.reportedPrompt);
    }
    const isWhole = error === undefined && !this.#isStopped && !open.continuation?.isAtLimit;
    if (observed.finishSeen !== true) open.cached?.release(open.call.memoryAccount);
    const usage = observed.usageSoFar?.() ?? streamUsage(open.request, observed, isWhole);
    return open.ended(usage, error, this.#isStopped ? spentCode : undefined);
  }
}

/** A function of its own, because a closure within a function makes each call allocate all its variables. */
function usageSoFar(request: DecodedRequest, observed: StreamObservation): () => TokenUsage {
  return () => observed.usageSoFar?.() ?? streamUsage(request, observed, false);
}
