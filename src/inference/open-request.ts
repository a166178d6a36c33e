// Handles a model request from its admission to its end. Every request is settled exactly once, whatever happens.

import type { BodySource } from "../base/bytes/body-source.ts";
import type { MemoryAccount } from "../base/bytes/buffered-bytes.ts";
import type { ByteSpan, Bytes } from "../base/bytes/byte-span.ts";
import { type CancelListener, Cancellation } from "../base/cancellation.ts";
import { Deferred, type MaybePromise, whenSettled } from "../base/deferred.ts";
import { BlamelessError, GatewayError } from "../base/errors.ts";
import { noIndex } from "../base/indexed-set.ts";
import type { Lease } from "../domain/limits/limits.ts";
import type { Deployment, Model } from "../domain/models/model.ts";
import type { KeptAnswer } from "../domain/models/policies/answer-store.ts";
import type { Priority } from "../domain/models/policies/priority.ts";
import { partyOf } from "../domain/principal.ts";
import type { AccountSeal } from "../domain/seal.ts";
import type { AttemptCause } from "../domain/usage/attempt-health.ts";
import type { CacheResult } from "../domain/usage/cache-result.ts";
import type { InferenceCourse } from "../domain/usage/observer.ts";
import type { RequestTrace } from "../domain/usage/trace.ts";
import type { StepResult, Trail } from "../domain/usage/trail.ts";
import type { TokenUsage, UsageBegin, UsageOutcome } from "../domain/usage/usage.ts";
import { replayedParts } from "../domain/usage/usage-parts.ts";
import { accessibleModel, usableModel } from "../policy/authorize.ts";
import type { Meter } from "../policy/meter.ts";
import { nanoUsdOf, type PricedUsage } from "../policy/price.ts";
import { clampUsage, type UsageBounds, usageBounds } from "../policy/usage-bounds.ts";
import type { DecodedRequest } from "../requests/decoded-request.ts";
import type { Answer, AnswerNames, OwnMembers, SaidListener, StreamObservation } from "../requests/dialects/answer.ts";
import { LongAnswer } from "../requests/dialects/long-answer.ts";
import { partsOf } from "../requests/dialects/reported-parts.ts";
import { guardedAnswer } from "../requests/dialects/texts/guarded-answer.ts";
import { translatedAnswer } from "../requests/dialects/translation/translated-answer.ts";
import { type LongAnswerTaker, WholeBody } from "./answer/answer-body.ts";
import type { AnswerRecorder } from "./answer/answer-recorder.ts";
import { isOfEngine } from "./answer/engine-refusal.ts";
import { passTo } from "./answer/passed-answer.ts";
import { relayTo } from "./answer/relayed-answer.ts";
import { spentCode } from "./answer/stop-mark.ts";
import { noteLeastLimit } from "./asking.ts";
import type { CachedRequest } from "./cache/cached-request.ts";
import { ReplayedAnswer } from "./cache/replayed-answer.ts";
import { type InferenceAnswer, type InferenceCall, type InferenceDeps, sizeOf, urgencyOf } from "./call.ts";
import { Continuation, type ContinuedRequest } from "./continuation/continuation.ts";
import { blockedCode, isCovered } from "./guarding.ts";
import type { Dispatched, Sender } from "./routing/attempt.ts";
import type { QueuePosition } from "./routing/capacity.ts";
import { dispatch } from "./routing/dispatch.ts";
import { type PromptPrefix, promptPrefixOf } from "./routing/prompt-prefix.ts";
import type { Workload } from "./routing/route.ts";
import { isServable } from "./routing/servable.ts";
import type { Stoppable } from "./stopping.ts";
import { faultSaid, resultOf, TrailWriter, type Tried } from "./trail-writer.ts";

const nothing: readonly string[] = [];

/** The stores of the answer: the response store and the response cache. */
export interface Keeps {
  readonly recorder: AnswerRecorder | undefined;
  readonly cached: CachedRequest | undefined;
}

/** The phase of a request. A request may end in any phase. */
type Phase =
  /** The request is being written to the ledger, so no engine may be asked yet. */
  | "beginning"
  /** The gateway chooses a deployment and sends the request to it. */
  | "asking"
  /**
   * The model server was silent for long, so the client's stream has begun, with comments. The relay waits for the
   * server's answer.
   */
  | "silent"
  /** The answer is being read or forwarded. */
  | "answering";

/**
 * An open model request. Settles with the answer, or with the error for the client. To avoid promises and closures in
 * ordinary requests, this object implements the callbacks of all parts that it calls.
 */
export class OpenRequest<Result>
  extends Deferred<Result>
  implements
    ContinuedRequest,
    Sender,
    Workload,
    AnswerNames,
    InferenceCourse,
    CancelListener,
    Stoppable,
    LongAnswerTaker
{
  /** Cancelled to stop all work for the request. */
  readonly cancellation = new Cancellation();
  readonly call: InferenceCall<Result>;
  readonly deps: InferenceDeps;
  readonly meter: Meter;
  /** Stores the answer. Undefined if the answer is not stored. */
  readonly recorder: AnswerRecorder | undefined;
  /** Set if the response cache may be used for this request. */
  readonly cached: CachedRequest | undefined;
  /** Number of attempts at an engine. A request without attempts costs nothing. */
  attempts = 0;
  isUnderReported = false;
  extraNanoUsd = 0;
  setIndex = noIndex;
  refusal: InferenceCourse["refusal"];
  readonly #model: Model;
  readonly #begin: UsageBegin;
  #dispatched: Dispatched | undefined;
  /** The cached answer, if one is sent to the client. */
  #replayed: KeptAnswer | undefined;
  /**
   * The error with which the gateway stopped the request. The gateway itself then closes the connection, so the client
   * does not count as gone.
   */
  #stopError: GatewayError | undefined;
  #queueMs = 0;
  /** The reservation for the additional cost of a fallback model. */
  #dearer: Lease | undefined;
  #hasEnded = false;
  /** Returns the position in the queue. Undefined if the request has never waited. */
  #queuePosition: (() => QueuePosition | undefined) | undefined;
  /** Time in monotonic milliseconds at which the last engine got the request. */
  #sentMs = 0;
  /**
   * Writes the trail, which is the log of attempts. Undefined if the first attempt succeeded and nothing else happened.
   */
  #trail: TrailWriter | undefined;
  #phase: Phase = "beginning";
  /** The prefix of the prompt, which only some requests have. Computed when first needed. */
  #prefix: PromptPrefix | undefined;
  #prefixIsRead = false;
  /** Continues a broken stream at another deployment. Set only for streams of models with this policy. */
  #continuation: Continuation | undefined;
  /** The deployment that broke off and whose result is already in the trail. */
  #reportedCut: Dispatched | undefined;
  /** Timer that starts the client's stream if the engine is silent for too long. */
  #silence: ReturnType<typeof setTimeout> | undefined;
  /** Set in the phase "silent": settles with the engine's answer or failure for the relay. */
  #late: Deferred<Dispatched> | undefined;
  /** The body of an answer that is not streamed, while it is read. */
  #whole: WholeBody | undefined;
  /** The complete answer, stored here until it may be sent to the client. */
  #answer: string | Bytes = "";

  constructor(
    call: InferenceCall<Result>,
    deps: InferenceDeps,
    model: Model,
    { recorder, cached }: Keeps,
    begin: UsageBegin,
    meter: Meter,
  ) {
    super();
    this.call = call;
    this.deps = deps;
    this.recorder = recorder;
    this.cached = cached;
    this.meter = meter;
    this.#model = model;
    this.#begin = begin;
    call.clientGone.onCancel(this);
    deps.stopping.add(this);
    deps.observer?.inferenceBegan(this.#begin);
  }

  get request(): DecodedRequest {
    return this.call.request;
  }

  get requestId(): string {
    return this.call.requestId;
  }

  get priority(): Priority {
    return urgencyOf(this.call);
  }

  get caller(): Stoppable["caller"] {
    return this.call.principal;
  }

  get accountId(): string {
    return this.call.principal.account.id;
  }

  get partyId(): string {
    return partyOf(this.call.principal);
  }

  get memoryAccount(): MemoryAccount {
    return this.call.memoryAccount;
  }

  get seal(): AccountSeal {
    return this.deps.sealFor(this.accountId);
  }

  get checkedBy(): readonly string[] | undefined {
    return this.call.guarding?.names;
  }

  get recording(): boolean {
    return this.recorder !== undefined;
  }

  get trace(): RequestTrace | undefined {
    return this.call.trace;
  }

  get onWanted(): (() => void) | undefined {
    return this.call.onWanted;
  }

  get workload(): Workload {
    return this;
  }

  get promptTokens(): number {
    return this.request.promptTokens;
  }

  get maxCompletionTokens(): number | undefined {
    return this.request.maxCompletionTokens;
  }

  get width(): number {
    return this.request.width;
  }

  /** Id of the completion. */
  get id(): string {
    return this.request.dialect.idOf(this.requestId);
  }

  /** Creation time of the answer in Unix seconds. */
  get created(): number {
    return this.#begin.at;
  }

  nowSeconds(): number {
    return this.deps.clock.nowSeconds();
  }

  /** True if the gateway gives the answer its own id, because a stored or cached answer needs a unique id. */
  get ownId(): boolean {
    return this.recording || this.#replayed !== undefined;
  }

  get cache(): CacheResult | undefined {
    return this.cached?.result;
  }

  get members(): OwnMembers | undefined {
    const { dialect, goesOn } = this.request;
    return dialect.kept?.members(this.recording, goesOn);
  }

  get continuation(): Continuation | undefined {
    return this.#continuation;
  }

  /** The continuation of the stream, while another deployment is being searched for it. Otherwise undefined. */
  get continuing(): Continuation | undefined {
    return this.#continuation?.isUnderWay ? this.#continuation : undefined;
  }

  get said(): SaidListener | undefined {
    return this.#continuation?.said;
  }

  get continuations(): InferenceCourse["continuations"] {
    return this.#continuation?.outcomes;
  }

  maxTokensOf({ price }: Model): number | undefined {
    const read = this.promptTokens + (this.continuing?.rereadTokens ?? 0);
    const most = this.meter.stop?.mostTokens(read, price) ?? Number.POSITIVE_INFINITY;
    return most === Number.POSITIVE_INFINITY ? undefined : Math.max(1, Math.floor(most / this.width));
  }

  ignoredLimits(deployment: Deployment): ReadonlySet<string> {
    return this.deps.usageDoubts.ignoredLimits(deployment);
  }

  get mayBeStopped(): boolean {
    return this.isStoppable || this.call.guarding?.answer !== undefined;
  }

  /** True if a quota may end the answer when the quota is used up. */
  get isStoppable(): boolean {
    return this.meter.stop !== undefined && !this.#replayed;
  }

  get fallbackModel(): string | undefined {
    const served = this.#dispatched?.model ?? this.#model;
    return served.id === this.#model.id ? undefined : served.id;
  }

  prefix(): PromptPrefix | undefined {
    if (!this.#prefixIsRead) {
      this.#prefixIsRead = true;
      this.#prefix = promptPrefixOf(this.request, this.accountId);
    }
    return this.#prefix;
  }

  modelNow(id: string): Model | undefined {
    const model = this.deps.catalog.get(id);
    // The key's right to use the model was checked when the request was admitted. Here only its deployments are
    // restricted.
    return model && accessibleModel(this.call.principal, model);
  }

  /**
   * Reports whether the deployment may be asked now. An operator may have changed the model after the request began.
   */
  mayAsk({ engine, model }: Deployment, of: Model): boolean {
    if (!this.call.principal.modelAccess?.neverLeaves) return true;
    const now = this.modelNow(of.id)?.deployments ?? [];
    return now.some((one) => one.engine === engine && one.model === model);
  }

  /** Returns the fallback models that the key may use and that can serve the request. */
  fallbackModels(): readonly Model[] {
    // Only the same model may continue a broken stream, so there are no fallback models then.
    if (this.continuing) return [];
    const { principal, request, guarding } = this.call;
    return (this.#model.fallbacks ?? []).flatMap((id) => {
      const model = this.deps.catalog.get(id);
      const usable = model && usableModel(principal, model);
      return usable && isServable(usable, request) && isCovered(usable, guarding?.names) ? [usable] : [];
    });
  }

  affords(model: Model): boolean | Promise<boolean> {
    this.#dearer?.settle(0, 0);
    this.#dearer = undefined;
    if (model.price === undefined || model === this.#model) return true;
    const { call, deps } = this;
    const size = sizeOf(call, deps, this.#model, this.#begin.tags);
    const refused = (error: unknown) => {
      if (error instanceof GatewayError) return false;
      throw error;
    };
    try {
      const lease = deps.admitter.admitDearer(call.principal, size, model);
      if (!(lease instanceof Promise)) {
        this.#dearer = lease;
        return true;
      }
      return lease.then((granted) => this.#takeDearer(granted), refused);
    } catch (error) {
      return refused(error);
    }
  }

  #takeDearer(lease: Lease): boolean {
    // If the request has ended while the money was being reserved, the reservation is released.
    if (this.#hasEnded) lease.settle(0, 0);
    else this.#dearer = lease;
    return true;
  }

  waits(position: () => QueuePosition | undefined): void {
    this.#queuePosition = position;
  }

  /** Returns the position in the queue, or undefined while the request does not wait. */
  get queuePosition(): QueuePosition | undefined {
    return this.#queuePosition?.();
  }

  waited(ms: number): void {
    this.#queueMs += ms;
  }

  sending(sinceMs: number): void {
    const shadow = this.#model.policies?.shadow;
    if (shadow && this.attempts === 0) this.deps.shadows?.sent(shadow, this.#model.id, this.call);
    this.attempts++;
    this.#sentMs = sinceMs;
  }

  tried(step: Tried): string | null {
    this.#trail ??= new TrailWriter(this.request, this.meter.startedMs);
    return this.#trail.add(step, this.deps.clock.monotonicMs());
  }

  attempted({ engine, model }: Deployment, error: unknown, cause?: AttemptCause): void {
    if (error !== undefined) this.trace?.attemptFailed(error);
    this.deps.observer?.attempted(engine.name, model, error, cause);
  }

  /** Called when the client has left or its connection was closed. */
  cancelled(): void {
    this.cancellation.cancel(this.call.clientGone.reason);
  }

  stop(error: GatewayError): void {
    if (!this.call.clientGone.cancelled) this.#stopError = error;
    this.cancellation.cancel(error);
  }

  /** Starts the request. Must be called once. */
  start(): this {
    // An engine may be silent for minutes while it reads a long prompt. The client's stream then begins with comments.
    if (this.request.stream) this.#silence = setTimeout(onSilence, this.deps.heartbeatMs, this);
    whenSettled(this.meter.begun, onBegun, onFailure, this);
    return this;
  }

  /** Called when the request is in the ledger. From now on an engine may be asked. */
  begun(): void {
    if (this.#phase === "beginning") this.#phase = "asking";
    try {
      this.call.onLedger();
      if (this.cached) this.#lookUp(this.cached);
      else this.#dispatch();
    } catch (error) {
      this.failed(error);
    }
  }

  #dispatch(): void {
    whenSettled(dispatch(this.request, this.#model, this.deps, this), onDispatched, onFailure, this);
  }

  #lookUp(cached: CachedRequest): void {
    const found = cached.find(this);
    if (found instanceof Promise) whenSettled(found, onFound, onFailure, this);
    else this.found(found);
  }

  /** Called with the cached answer. Called with undefined if the cache has none, so that an engine must answer. */
  found(answer: KeptAnswer | undefined): void {
    const cached = this.cached as CachedRequest;
    try {
      // The client may have left during the look-up in the cache.
      if (this.cancellation.cancelled) throw this.cancellation.reason;
      this.call.onCache?.(cached.result, answer && Math.max(0, this.created - answer.at));
      if (!answer) {
        this.#dispatch();
        return;
      }
      this.#replayed = answer;
      this.meter.replays(cached.policy.priceFactor);
      this.dispatched(new ReplayedAnswer(answer, this.#model, this.request));
    } catch (error) {
      this.failed(error);
    }
  }

  dispatched(dispatched: Dispatched): void {
    this.#dispatched = dispatched;
    if (this.#phase === "asking") this.#phase = "answering";
    try {
      if (this.request.answersBytes && !this.#isJsonText(dispatched)) this.#pass(dispatched);
      else if (!this.request.stream) this.#readWhole(dispatched);
      else if (this.#phase === "silent") this.#cameInSilence(dispatched);
      else this.#relay(dispatched);
    } catch (error) {
      // The unread body must be cancelled, because it would block its connection.
      dispatched.response.body.cancel();
      this.#fail(error);
    }
  }

  /**
   * Reports whether the server returned JSON to a request for text. If audio was requested, JSON is a wrong type or an
   * error.
   */
  #isJsonText({ response }: Dispatched): boolean {
    return this.request.answersText && isJson(response);
  }

  /**
   * Called when the engine's output is known to be an answer. Before anything is sent, the client is told which model
   * serves it.
   */
  answers(dispatched: Dispatched): void {
    dispatched.answers();
    const { model, leftOut = nothing, response, capped } = dispatched;
    if (model.id !== this.#model.id) {
      noteLeastLimit(this.request, model);
      this.meter.servedBy(model.price, usageBounds(model, this.request));
    }
    if (model.id !== this.request.model) this.call.onServedBy(model.id);
    // An engine reports in this header that it ignored the request's tools.
    const ignored = response.headers.get("x-headrace-ignored") === "tools" ? [...leftOut, "tools"] : leftOut;
    if (ignored.length > 0) this.call.onIgnored(ignored);
    if (capped !== undefined) this.call.onCapped(capped);
    if (this.#queuePosition) this.call.onQueued?.(Math.round(this.#queueMs), undefined);
  }

  /** Called when the client's stream begins. `begin` sends what has already arrived. */
  begins(begin: InferenceAnswer): void {
    this.resolve(this.call.answer(begin));
  }

  /** Called if the stream ended with an error before it began. The client then gets only the error. */
  unbegun(error: unknown): void {
    this.reject(this.#stopError ?? error);
  }

  /** Asks another deployment after `dispatched` gave no answer. */
  another(dispatched: Dispatched, error: unknown, isCut: boolean): MaybePromise<Dispatched> {
    // `dispatched` adds its own result to the trail, so the result must not be added again.
    this.#reportedCut = dispatched;
    const next = dispatched.another(error, isCut);
    whenSettled(next, onAnother, nothingMore, this);
    return next;
  }

  /** Called when another deployment, `dispatched`, has responded after the previous one gave no answer. */
  moved(dispatched: Dispatched): void {
    this.#dispatched = dispatched;
    if (this.cancellation.cancelled) this.cameLate(dispatched);
  }

  cutOff(dispatched: Dispatched, error: unknown, usage: TokenUsage): void {
    const { deployment, model, bill } = dispatched;
    this.#reportedCut = dispatched;
    bill?.settle(clampUsage(usage, this.#boundsNow(model)));
    this.tried({
      deployment,
      model: model.id,
      sinceMs: this.#sentMs,
      result: this.#resultOf(error),
      said: faultSaid(error),
    });
  }

  wentOn(dispatched: Dispatched): void {
    // The price at the start of the answer counts, even if an operator changes it meanwhile.
    const { price } = (this.#dispatched ?? dispatched).model;
    this.#dispatched = dispatched;
    this.meter.servedBy(price, this.#boundsNow(dispatched.model));
    this.call.onContinued?.(this.#continuation?.times ?? 0);
  }

  #cameInSilence(dispatched: Dispatched): void {
    if (this.cancellation.cancelled) this.cameLate(dispatched);
    (this.#late as Deferred<Dispatched>).resolve(dispatched);
  }

  cameLate({ bill }: Dispatched): void {
    bill?.settle({ promptTokens: this.promptTokens, completionTokens: 0, parts: undefined });
  }

  /**
   * Returns the limits of plausible usage. If several servers continue one answer, each of them reads the prompt and
   * the text so far.
   */
  #boundsNow(model: Model): UsageBounds {
    const { times = 0, writtenBytes = 0 } = this.#continuation ?? {};
    const { bodyBytes, hasMedia, promptTokens, maxCompletionTokens, limitHolds, width, readings } = this.request;
    const all = {
      ...{ bodyBytes: bodyBytes + writtenBytes, hasMedia, promptTokens, maxCompletionTokens, limitHolds, width },
    };
    const readsBeyond = () => this.request.readsBeyond();
    return usageBounds(model, { ...all, readings: readings * (times + 1), readsBeyond });
  }

  /**
   * Called after the engine was silent for long. The client's stream begins now, so a later failure is sent as an
   * event.
   */
  silent(): void {
    this.#phase = "silent";
    const { queuePosition } = this;
    if (queuePosition) this.call.onQueued?.(this.#queueMs + queuePosition.waitedMs, queuePosition);
    this.#late = new Deferred();
    this.#relay(this.#late);
  }

  body(bytes: ByteSpan): void {
    const dispatched = this.#dispatched as Dispatched;
    const guard = this.call.guarding?.answer;
    let answer: Answer;
    try {
      const { translation } = dispatched;
      // With guardrails the trace is left out, because it would contain text that they remove.
      const serving = guard ? { model: dispatched.model, deployment: dispatched.deployment } : dispatched;
      answer = translation
        ? translatedAnswer(bytes, this.request, serving, this, translation)
        : this.request.dialect.readAnswer(bytes, this.request, serving, this);
      this.answers(dispatched);
    } catch (error) {
      this.noAnswer(error, false);
      return;
    }
    dispatched.done(false, answer.usage.completionTokens);
    if (guard) whenSettled(guardedAnswer(answer, guard), onGuarded, onFailure, this);
    else this.answered(answer);
  }

  /** Called with the whole answer that the client gets. */
  answered(answer: Answer): void {
    this.#answer = answer.body;
    const { guarding, onFindings } = this.call;
    const code = guarding?.answer?.blockedBy === undefined ? undefined : blockedCode;
    try {
      if (guarding) onFindings?.call(this.call, guarding.findings);
      this.recorder?.addWhole(answer.text);
      this.cached?.addWhole(answer.body);
      whenSettled(this.ended(answer.usage, undefined, code), onKept, onKept, this);
    } catch (error) {
      this.failed(error);
    }
  }

  noBody(error: unknown): void {
    this.noAnswer(error, true);
  }

  /** Ends an attempt if nothing was sent to the client yet, so that another deployment may answer. */
  noAnswer(error: unknown, isCut: boolean): void {
    const dispatched = this.#dispatched;
    const mayMove = error instanceof GatewayError && isOfEngine(error) && !this.cancellation.cancelled;
    if (dispatched && mayMove) {
      this.#whole?.release();
      this.#whole = undefined;
      this.#phase = "asking";
      whenSettled(this.another(dispatched, error, isCut), onDispatched, onFailure, this);
      return;
    }
    this.#fail(error);
  }

  #fail(error: unknown): void {
    this.#dispatched?.done(!this.call.clientGone.cancelled && !(error instanceof BlamelessError), undefined, error);
    this.failed(error);
  }

  kept(): void {
    // Releases the buffered answer. Output that the client has not read is counted elsewhere.
    this.#whole?.release();
    try {
      const text = this.recorder?.takesBack ? this.recorder.truthful(wholeText(this.#answer)) : undefined;
      this.resolve(this.call.answer(text ?? this.#answer));
    } catch (error) {
      this.reject(error);
    }
  }

  /** Called if the request fails before there is an answer. */
  failed(thrown: unknown): void {
    this.#whole?.release();
    if (this.#phase === "silent") {
      (this.#late as Deferred<Dispatched>).reject(thrown);
      return;
    }
    clearTimeout(this.#silence);
    const reject = () => this.reject(this.#stopError ?? thrown);
    try {
      whenSettled(this.endedWithoutAnswer(thrown), reject, reject);
    } catch {
      reject();
    }
  }

  #readWhole(dispatched: Dispatched): void {
    this.#whole = new WholeBody(dispatched, this.request, this.memoryAccount, this.cancellation, this);
    this.#whole.whenSettled(onBody, onNoBody, this);
  }

  #pass(dispatched: Dispatched, long?: LongAnswer): void {
    passTo(dispatched, this, long);
  }

  /** True if a long answer may be forwarded while it arrives, because no policy needs the whole answer in memory. */
  get takesLongAnswers(): boolean {
    const { passesLongAnswers, request, guarding } = this.call;
    const isRead = this.recording || guarding?.answer !== undefined || this.#dispatched?.translation !== undefined;
    return passesLongAnswers === true && request.dialect.long !== undefined && !isRead;
  }

  longAnswer(first: ByteSpan, rest: BodySource): LongAnswer | undefined {
    const { request } = this;
    const dispatched = this.#dispatched as Dispatched;
    const format = request.dialect.long;
    const { id, context } = dispatched.model;
    const long = format && LongAnswer.begin(first, rest, format, request, { id, context, answerId: this.id });
    if (long) this.#pass(dispatched, long);
    return long;
  }

  #relay(source: Dispatched | Deferred<Dispatched>): void {
    clearTimeout(this.#silence);
    if (this.#model.policies?.continuation && this.request.dialect.generates)
      this.#continuation = new Continuation(this);
    // If the gateway stops the request from now on, the relay reports this to the client.
    this.deps.stopping.remove(this);
    relayTo(source, this);
  }

  /**
   * Ends a request that got no answer. A failure before the first token costs nothing. If the client left, the prompt
   * is charged. `reportedPrompt` is the prompt usage that the engine reported.
   */
  endedWithoutAnswer(thrown: unknown, reportedPrompt?: StreamObservation["reportedPrompt"]): MaybePromise<void> {
    const error = this.#stopError ?? thrown;
    // An engine had begun to answer, so the money reserved for an overflow deployment counts as spent.
    this.#dispatched?.bill?.keep();
    const outcome = this.#stopError ? "failed" : this.#outcomeOf(error);
    const isRead = outcome === "cancelled" && this.attempts > 0;
    const { promptTokens, unitsRead } = this.request;
    // Some servers report a usage of zero at the beginning of their stream.
    const known =
      reportedPrompt && reportedPrompt.promptTokens >= promptTokens
        ? reportedPrompt
        : { promptTokens, parts: undefined };
    const details = unitsRead ? { ...known.parts?.details, ...unitsRead } : known.parts?.details;
    const read = { promptTokens: known.promptTokens, parts: partsOf({ ...known.parts, details }) };
    const usage = { ...(isRead ? read : nothingUsed), completionTokens: 0, estimated: true };
    return this.#end(outcome, usage, error);
  }

  /** Ends a request that got an answer. If `error` is set, the client got only a part of the answer. */
  ended(usage: TokenUsage, error: unknown, code?: string): MaybePromise<void> {
    const mayCharge = this.call.mayCharge?.();
    if (mayCharge === undefined) return this.#ended(usage, error, code);
    return mayCharge.then((isOurs) =>
      isOurs ? this.#ended(usage, error, code) : this.#end("failed", nothingUsed, endedElsewhere()),
    );
  }

  #ended(usage: TokenUsage, error: unknown, code?: string): MaybePromise<void> {
    // A cached stream may contain no usage, so the usage of the original answer is recorded instead.
    if (this.#replayed && error === undefined) return this.#end("completed", this.#replayed.usage, undefined, code);
    const { capped = Number.POSITIVE_INFINITY } = this.#dispatched ?? {};
    // True if the engine stopped at a token limit that the gateway had set because of a quota.
    const isSpent = error === undefined && usage.completionTokens >= capped * this.width;
    return this.#end(this.#outcomeOf(error), usage, error, isSpent ? spentCode : code);
  }

  #outcomeOf(error: unknown): UsageOutcome {
    if (error === undefined) return "completed";
    const { clientGone } = this.call;
    const isAbort = error instanceof DOMException && error.name === "AbortError";
    const isClientGone = clientGone.cancelled ? !(clientGone.reason instanceof GatewayError) : isAbort;
    return isClientGone ? "cancelled" : "failed";
  }

  /** Returns the trail, which is the log of attempts, including the engine that served the request. */
  #wholeTrail(outcome: UsageOutcome, error: unknown): Trail | undefined {
    const dispatched = this.#dispatched;
    const findings = this.call.guarding?.findings;
    const hasFound = findings !== undefined && findings.length > 0;
    if (hasFound) this.#trail ??= new TrailWriter(this.request, this.meter.startedMs);
    if (dispatched && dispatched !== this.#reportedCut && (this.#trail || outcome === "failed")) {
      const { deployment, model } = dispatched;
      const step = { deployment, model: model.id, sinceMs: this.#sentMs };
      if (outcome === "failed") this.tried({ ...step, result: this.#resultOf(error), said: faultSaid(error) });
      else this.tried({ ...step, result: "answered" });
    }
    if (hasFound) this.#trail?.found(this.#model.id, findings, this.deps.clock.monotonicMs());
    return this.#trail?.trail;
  }

  /** Returns the result that the trail shows for an engine that had begun to answer. */
  #resultOf(error: unknown): StepResult {
    const result = resultOf(error, this.#stopError !== undefined);
    return result === "unreachable" ? "broke_off" : result;
  }

  /** Settles the request. Resolves when its end is in the ledger. The end of the answer may then be sent. */
  #end(outcome: UsageOutcome, reported: TokenUsage, error: unknown, code: string | null = null): MaybePromise<void> {
    const { call, deps } = this;
    call.clientGone.off(this);
    deps.stopping.remove(this);
    this.#continuation?.said.release();
    if (error !== undefined) deps.refusalCounts.count(call.principal, this.#model.id, error);
    const upstream = this.#replayed ? null : (this.#dispatched?.deployment.engine.name ?? null);
    this.isUnderReported = reported.understated === true;
    if (this.isUnderReported)
      deps.usageDoubts.usageUnderReported(upstream ?? "", this.#dispatched?.model.id ?? this.#model.id);
    if (reported.pastLimit) this.#learnIgnored(reported);
    this.#hasEnded = true;
    const { end, kept } = this.meter.settle({
      outcome,
      usage: this.#replayed ? { ...reported, parts: replayedParts(reported.parts) } : reported,
      errorCode: error instanceof GatewayError ? error.code : code,
      upstream,
      queueMs: Math.round(this.#queueMs),
      trail: this.#wholeTrail(outcome, error),
    });
    this.#dearer?.settle(0, 0);
    this.#dispatched?.bill?.settle(this.#billed(end));
    this.trace?.answered(end);
    if (error instanceof GatewayError) this.refusal = error.refusal;
    if (this.fallbackModel !== undefined && end.nanoUsd !== null) {
      const usual = nanoUsdOf(end, this.#model.price, this.#begin.at) ?? 0;
      this.extraNanoUsd = Math.max(0, end.nanoUsd - usual);
    }
    deps.observer?.inferenceEnded(this.#begin, end, this);
    deps.quotaWatch?.used(call.principal);
    if (outcome === "completed" && !this.#replayed) {
      deps.admitter.learnCached(this.accountId, this.#dispatched?.model ?? this.#model, end);
      // The usual length of answers is learned only from generated tokens that no limit may have cut.
      const { maxCompletionTokens, width } = this;
      const served = this.#dispatched?.model ?? this.#model;
      if ((maxCompletionTokens === undefined || reported.pastLimit) && code === null)
        deps.admitter.learn(served, end.completionTokens / width);
    }
    const stored = this.#keep(outcome, end);
    if (this.cached) this.#cache(this.cached, outcome === "completed" && code === null, reported);
    call.onEnd(outcome, end, error, this.#replayed ? undefined : this.#dispatched?.deployment);
    return stored ? Promise.all([kept, stored]).then(nothingMore) : kept;
  }

  /** Records a token limit that the server seems to ignore. Answers that are long for another reason do not count. */
  #learnIgnored({ estimated, completionTokens }: TokenUsage): void {
    const { deployment, limitName } = this.#dispatched ?? {};
    if (!deployment || !limitName || !this.request.limitHolds || this.#continuation?.times || this.#replayed) return;
    const { maxCompletionTokens = Number.POSITIVE_INFINITY, width } = this.request;
    if (estimated && completionTokens <= maxCompletionTokens * width * maxEstimateError) return;
    this.deps.usageDoubts.limitIgnored(deployment, limitName);
  }

  /** Returns the usage of the last server. The parts that earlier servers generated are billed separately. */
  #billed(end: PricedUsage): PricedUsage {
    const last = this.#continuation?.lastUsage;
    if (!last) return end;
    const promptTokens = Math.min(last.promptTokens, end.promptTokens);
    const completionTokens = Math.min(last.completionTokens, end.completionTokens);
    return { promptTokens, completionTokens, parts: last.parts };
  }

  /** Caches the answer, unless a fallback model or more than one server generated it. */
  #cache(cached: CachedRequest, isWhole: boolean, usage: TokenUsage): void {
    const isOwn = this.#replayed === undefined && this.fallbackModel === undefined && !this.#continuation?.times;
    if (isWhole && isOwn) cached.keep(usage, this.#dispatched?.leftOut ?? nothing);
    cached.release(this.memoryAccount);
  }

  /** Stores the answer. Returns undefined if there is nothing to wait for. */
  #keep(outcome: UsageOutcome, usage: TokenUsage): MaybePromise<void> | undefined {
    const { recorder } = this;
    if (!recorder) return undefined;
    const stored = outcome === "cancelled" ? undefined : recorder.keep({ createdAt: this.created, usage, outcome });
    const release = () => recorder.release();
    if (stored) whenSettled(stored, release, release);
    else release();
    return stored;
  }
}

// Callbacks that all requests share, so that no request needs closures.

type AnyRequest = OpenRequest<unknown>;

/**
 * Reports whether the server returned JSON. The body must then be read even if bytes were requested, because it may be
 * an error.
 */
function isJson({ headers }: Dispatched["response"]): boolean {
  return /^application\/(?:[\w.+-]+\+)?json\b/i.test(headers.get("content-type") ?? "");
}

function nothingMore(): void {}

/**
 * Factor by which an estimate of four bytes per token may be too high: tokens of words and indented code are up to
 * three times as long.
 */
const maxEstimateError = 3;
const nothingUsed: TokenUsage = { promptTokens: 0, completionTokens: 0, estimated: false };

function endedElsewhere(): GatewayError {
  return new GatewayError(
    "service_unavailable",
    "Another process has ended this response, as this one could not be seen for too long, or it could not be stored.",
  );
}

function wholeText(answer: string | Bytes): string {
  return typeof answer === "string" ? answer : Buffer.concat(answer.pieces).toString("utf8");
}

function onBegun(_: unknown, request: AnyRequest): void {
  request.begun();
}

function onFound(answer: KeptAnswer | undefined, request: AnyRequest): void {
  request.found(answer);
}

function onAnother(dispatched: Dispatched, request: AnyRequest): void {
  request.moved(dispatched);
}

function onDispatched(dispatched: Dispatched, request: AnyRequest): void {
  request.dispatched(dispatched);
}

function onBody(bytes: ByteSpan, request: AnyRequest): void {
  request.body(bytes);
}

function onGuarded(answer: Answer, request: AnyRequest): void {
  request.answered(answer);
}

function onNoBody(error: unknown, request: AnyRequest): void {
  request.noBody(error);
}

function onKept(_: unknown, request: AnyRequest): void {
  request.kept();
}

function onFailure(error: unknown, request: AnyRequest): void {
  request.failed(error);
}

function onSilence(request: AnyRequest): void {
  request.silent();
}
