// A request from its admission to its end, and what comes of it; every way out of it settles, once.

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
import type { CacheResult } from "../domain/usage/cache-result.ts";
import type { InferenceCourse } from "../domain/usage/observer.ts";
import type { RequestTrace } from "../domain/usage/trace.ts";
import type { StepResult, Trail } from "../domain/usage/trail.ts";
import type { TokenUsage, UsageBegin, UsageOutcome } from "../domain/usage/usage.ts";
import { replayedParts } from "../domain/usage/usage-parts.ts";
import { usableModel, withinReach } from "../policy/authorize.ts";
import { believable, type UsageBounds, usageBounds } from "../policy/believable-usage.ts";
import type { Meter } from "../policy/meter.ts";
import type { PricedUsage } from "../policy/price.ts";
import type { DecodedRequest } from "../requests/decoded-request.ts";
import type { Answer, AnswerNames, OwnMembers, SaidListener, StreamObservation } from "../requests/dialects/answer.ts";
import { LongAnswer } from "../requests/dialects/long-answer.ts";
import { guardedAnswer } from "../requests/dialects/texts/guarded-answer.ts";
import { partsOf } from "../requests/dialects/told-parts.ts";
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
import { type Stoppable, stoppingError } from "./stopping.ts";
import { faultSaid, resultOf, TrailWriter, type Tried } from "./trail-writer.ts";

const nothing: readonly string[] = [];

/** Who keeps its answer: for its client to read again, and to give again to who asks the same. */
export interface Keeps {
  readonly recorder: AnswerRecorder | undefined;
  readonly cached: CachedRequest | undefined;
}

/** How far a request has come; it may end in each of them. */
type Phase =
  /** It is being written to the ledger: no engine may be asked yet. */
  | "beginning"
  /** A deployment is looked for, and asked. */
  | "asking"
  /**
   * There was silence for so long that the client of a stream was told that an answer begins: the relay has it from here on,
   * and is told what comes of the engine.
   */
  | "silent"
  /** An engine's answer is read, or passed on. */
  | "answering";

/**
 * Settles with the answer, or with the error that the client gets instead. It takes itself from wait to wait, and is what
 * each part that it calls wants of a request: on the way of every request there is no promise, and no closure.
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
  /** Stops those who work for it. */
  readonly cancellation = new Cancellation();
  readonly call: InferenceCall<Result>;
  readonly deps: InferenceDeps;
  readonly meter: Meter;
  /** Where the answer is to be kept. */
  readonly recorder: AnswerRecorder | undefined;
  /** Whose answer may be one that is kept, or be kept to be given again. */
  readonly cached: CachedRequest | undefined;
  /** Times that an engine was asked: what was never sent costs nothing. */
  attempts = 0;
  understated = false;
  setIndex = noIndex;
  refusal: InferenceCourse["refusal"];
  readonly #model: Model;
  readonly #begin: UsageBegin;
  #dispatched: Dispatched | undefined;
  /** The answer that is given again. */
  #replayed: KeptAnswer | undefined;
  /** The server ended first: its own end of the connection, a moment later, is no client that left. */
  #stopped = false;
  #queueMs = 0;
  /** Set aside for a fallback that costs more than the model that was asked for. */
  #dearer: Lease | undefined;
  #hasEnded = false;
  /** Once it had to wait. */
  #standing: (() => QueuePosition | undefined) | undefined;
  /** When the engine that was asked last was given the request: monotonic milliseconds. */
  #sentMs = 0;
  /** Where there is more to tell than that the first one answered. */
  #trail: TrailWriter | undefined;
  #phase: Phase = "beginning";
  /** Where a request has one; read when somebody asks for it. */
  #prefix: PromptPrefix | undefined;
  #prefixIsRead = false;
  /** Only for a stream of a model whose streams are continued. */
  #continuation: Continuation | undefined;
  /** The one of which the trail has told already that it broke off. */
  #reportedCut: Dispatched | undefined;
  /** Runs for a stream until its answer begins. */
  #silence: ReturnType<typeof setTimeout> | undefined;
  /** Since "silent": the engine's answer, or what became of it, as the relay waits for it. */
  #late: Deferred<Dispatched> | undefined;
  /** The whole answer that is read, where it is no stream. */
  #whole: WholeBody | undefined;
  /** A whole answer, until it may be shown. */
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

  /** The completion's own id. */
  get id(): string {
    return this.request.dialect.idOf(this.requestId);
  }

  /** Unix seconds. */
  get created(): number {
    return this.#begin.at;
  }

  nowSeconds(): number {
    return this.deps.clock.nowSeconds();
  }

  /** An answer that is kept needs an id that no engine can repeat, and one that is given again an id of its own. */
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

  /** Only while another deployment is looked for in the middle of the answer. */
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

  /** Whether a quota may end it. */
  get isStoppable(): boolean {
    return this.meter.stop !== undefined && !this.#replayed;
  }

  get standIn(): string | undefined {
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
    // Whether the key may use it was settled when its turn came.
    return model && withinReach(this.call.principal, model);
  }

  /** An operator may have said otherwise since the request was given its way. */
  mayAsk({ engine, model }: Deployment, of: Model): boolean {
    if (!this.call.principal.reach?.neverLeaves) return true;
    const now = this.modelNow(of.id)?.deployments ?? [];
    return now.some((one) => one.engine === engine && one.model === model);
  }

  /** Only what the key may use, and what could serve the request if it were asked for. */
  standIns(): readonly Model[] {
    // The rest of an answer is the same model's.
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
    // The request may have ended meanwhile.
    if (this.#hasEnded) lease.settle(0, 0);
    else this.#dearer = lease;
    return true;
  }

  waits(standing: () => QueuePosition | undefined): void {
    this.#standing = standing;
  }

  /** Where it stands among those that wait; undefined where it does not. */
  get standing(): QueuePosition | undefined {
    return this.#standing?.();
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

  tried(step: Tried): void {
    this.#trail ??= new TrailWriter(this.request, this.meter.startedMs);
    this.#trail.add(step, this.deps.clock.monotonicMs());
  }

  attempted({ engine }: Deployment, error: unknown): void {
    if (error !== undefined) this.trace?.attemptFailed(error);
    this.deps.observer?.attempted(this.requestId, this.#model.id, engine.name, error);
  }

  /** The client left, or was cut off. */
  cancelled(): void {
    this.cancellation.cancel(this.call.clientGone.reason);
  }

  stop(): void {
    this.#stopped = !this.call.clientGone.cancelled;
    this.cancellation.cancel(stoppingError());
  }

  /** Once. */
  start(): this {
    // An engine that reads a long prompt is silent for minutes: then its client gets the begin of an answer, and comments.
    if (this.request.stream) this.#silence = setTimeout(onSilence, this.deps.heartbeatMs, this);
    whenSettled(this.meter.begun, onBegun, onFailure, this);
    return this;
  }

  /** It is on the ledger: from here on an engine may be asked. */
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

  /** What is kept of the same request; undefined: a model is asked. */
  found(answer: KeptAnswer | undefined): void {
    const cached = this.cached as CachedRequest;
    try {
      // Its client may have left meanwhile.
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
      // Nobody takes it: its connection would be held by what is not read.
      dispatched.response.body.cancel();
      this.#fail(error);
    }
  }

  /** Reports whether a requested text comes as JSON. Sound with that type is mislabelled, or an error. */
  #isJsonText({ response }: Dispatched): boolean {
    return this.request.answersText && isJson(response);
  }

  /** What came is an answer, or the begin of one: what depends on who gave it is told before anything of it. */
  answers(dispatched: Dispatched): void {
    dispatched.answers();
    const { model, leftOut = nothing, response, capped } = dispatched;
    if (model.id !== this.#model.id) {
      noteLeastLimit(this.request, model);
      this.meter.servedBy(model.price, usageBounds(model, this.request));
    }
    if (model.id !== this.request.model) this.call.onServedBy(model.id);
    // Tools are the only member of a request that an engine may leave out by itself.
    const ignored = response.headers.get("x-headrace-ignored") === "tools" ? [...leftOut, "tools"] : leftOut;
    if (ignored.length > 0) this.call.onIgnored(ignored);
    if (capped !== undefined) this.call.onCapped(capped);
    if (this.#standing) this.call.onQueued?.(Math.round(this.#queueMs), undefined);
  }

  /** The client's stream begins: `begin` sends it what there is. */
  begins(begin: InferenceAnswer): void {
    this.resolve(this.call.answer(begin));
  }

  /** The stream ended with an error before it began: nothing but that is answered. */
  unbegun(error: unknown): void {
    this.reject(this.#stopped ? stoppingError() : error);
  }

  /** Asks another deployment in place of one that gave no answer. */
  another(dispatched: Dispatched, error: unknown, isCut: boolean): MaybePromise<Dispatched> {
    // Its step of the trail is told by its attempt.
    this.#reportedCut = dispatched;
    const next = dispatched.another(error, isCut);
    whenSettled(next, onAnother, nothingMore, this);
    return next;
  }

  /** Asked in place of one that gave no answer. */
  moved(dispatched: Dispatched): void {
    this.#dispatched = dispatched;
    if (this.cancellation.cancelled) this.cameLate(dispatched);
  }

  cutOff(dispatched: Dispatched, error: unknown, usage: TokenUsage): void {
    const { deployment, model, bill } = dispatched;
    this.#reportedCut = dispatched;
    bill?.settle(believable(usage, this.#boundsNow(model)));
    this.tried({
      deployment,
      model: model.id,
      sinceMs: this.#sentMs,
      result: this.#resultOf(error),
      said: faultSaid(error),
    });
  }

  wentOn(dispatched: Dispatched): void {
    // Its price is that at which it began, whatever was said of the model since.
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

  /** Where others go on with an answer, each of them reads the prompt, and what came before it. */
  #boundsNow(model: Model): UsageBounds {
    const { times = 0, writtenBytes = 0 } = this.#continuation ?? {};
    const { bodyBytes, hasMedia, promptTokens, maxCompletionTokens, limitHolds, width, readings } = this.request;
    const all = {
      ...{ bodyBytes: bodyBytes + writtenBytes, hasMedia, promptTokens, maxCompletionTokens, limitHolds, width },
    };
    const readsBeyond = () => this.request.readsBeyond();
    return usageBounds(model, { ...all, readings: readings * (times + 1), readsBeyond });
  }

  /** A stream's client has heard nothing for a while: a failure becomes an event from here on. */
  silent(): void {
    this.#phase = "silent";
    const { standing } = this;
    if (standing) this.call.onQueued?.(this.#queueMs + standing.waitedMs, standing);
    this.#late = new Deferred();
    this.#relay(this.#late);
  }

  body(bytes: ByteSpan): void {
    const dispatched = this.#dispatched as Dispatched;
    const guard = this.call.guarding?.answer;
    let answer: Answer;
    try {
      const { translation } = dispatched;
      // A trace would have what guardrails take out.
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

  /** It is what its client gets. */
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

  /** Ends an attempt of which the client has nothing: another deployment may answer. */
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
    this.#dispatched?.done(!this.call.clientGone.cancelled && !(error instanceof BlamelessError));
    this.failed(error);
  }

  kept(): void {
    // What the client does not take at once is held as that.
    this.#whole?.release();
    try {
      const text = this.recorder?.takesBack ? this.recorder.truthful(wholeText(this.#answer)) : undefined;
      this.resolve(this.call.answer(text ?? this.#answer));
    } catch (error) {
      this.reject(error);
    }
  }

  /** Nothing was answered. */
  failed(thrown: unknown): void {
    this.#whole?.release();
    if (this.#phase === "silent") {
      (this.#late as Deferred<Dispatched>).reject(thrown);
      return;
    }
    clearTimeout(this.#silence);
    const reject = () => this.reject(this.#stopped ? stoppingError() : thrown);
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

  /** Reports whether no policy of the request has to read an answer as a whole. */
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
    // From here on the relay tells the client itself when the server ends.
    this.deps.stopping.remove(this);
    relayTo(source, this);
  }

  /**
   * A failure before the first token costs nothing; a client that leaves pays for the prompt that was read for it.
   * `reportedPrompt`: its tokens and their parts, as the engine told them.
   */
  endedWithoutAnswer(thrown: unknown, reportedPrompt?: StreamObservation["reportedPrompt"]): MaybePromise<void> {
    const error = this.#stopped ? stoppingError() : thrown;
    // It was being answered.
    this.#dispatched?.bill?.keep();
    const outcome = this.#stopped ? "failed" : this.#outcomeOf(error);
    const isRead = outcome === "cancelled" && this.attempts > 0;
    const { promptTokens, unitsRead } = this.request;
    // Servers may begin with figures of nothing yet.
    const known =
      reportedPrompt && reportedPrompt.promptTokens >= promptTokens
        ? reportedPrompt
        : { promptTokens, parts: undefined };
    const details = unitsRead ? { ...known.parts?.details, ...unitsRead } : known.parts?.details;
    const read = { promptTokens: known.promptTokens, parts: partsOf({ ...known.parts, details }) };
    const usage = { ...(isRead ? read : nothingUsed), completionTokens: 0, estimated: true };
    return this.#end(outcome, usage, error);
  }

  /** An answer was delivered, or, with an error, a part of one. */
  ended(usage: TokenUsage, error: unknown, code?: string): MaybePromise<void> {
    const mayCharge = this.call.mayCharge?.();
    if (mayCharge === undefined) return this.#ended(usage, error, code);
    return mayCharge.then((isOurs) =>
      isOurs ? this.#ended(usage, error, code) : this.#end("failed", nothingUsed, endedElsewhere()),
    );
  }

  #ended(usage: TokenUsage, error: unknown, code?: string): MaybePromise<void> {
    // A stream need not tell all that was used when it was made.
    if (this.#replayed && error === undefined) return this.#end("completed", this.#replayed.usage, undefined, code);
    const { capped = Number.POSITIVE_INFINITY } = this.#dispatched ?? {};
    // The engine ended it, as it was told.
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

  /** With what became of the engine that took the request. */
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

  /** The result of an engine whose answer had begun. */
  #resultOf(error: unknown): StepResult {
    const result = resultOf(error, this.#stopped);
    return result === "unreachable" ? "broke_off" : result;
  }

  /** Resolves when the end may be shown: it is on the ledger. */
  #end(outcome: UsageOutcome, reported: TokenUsage, error: unknown, code: string | null = null): MaybePromise<void> {
    const { call, deps } = this;
    call.clientGone.off(this);
    deps.stopping.remove(this);
    this.#continuation?.said.release();
    if (error !== undefined) deps.refusalCounts.count(call.principal, this.#model.id, error);
    const upstream = this.#replayed ? null : (this.#dispatched?.deployment.engine.name ?? null);
    this.understated = reported.understated === true;
    if (this.understated) deps.usageDoubts.understated(upstream ?? "", this.#dispatched?.model.id ?? this.#model.id);
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
    deps.observer?.inferenceEnded(this.#begin, end, this);
    deps.quotaWatch?.used(call.principal);
    if (outcome === "completed" && !this.#replayed) {
      deps.admitter.learnCached(this.accountId, this.#dispatched?.model ?? this.#model, end);
      // What a limit may have cut, and what generates nothing, says nothing of the usual length.
      const { maxCompletionTokens, width } = this;
      const served = this.#dispatched?.model ?? this.#model;
      if ((maxCompletionTokens === undefined || reported.pastLimit) && code === null)
        deps.admitter.learn(served, end.completionTokens / width);
    }
    const stored = this.#keep(outcome, end);
    if (this.cached) this.#cache(this.cached, outcome === "completed" && code === null, reported);
    call.onEnd(outcome, end, error);
    return stored ? Promise.all([kept, stored]).then(nothingMore) : kept;
  }

  /** A longer answer may also come of another member of the body, or of a server that went on with it. */
  #learnIgnored({ estimated, completionTokens }: TokenUsage): void {
    const { deployment, limitName } = this.#dispatched ?? {};
    if (!deployment || !limitName || !this.request.limitHolds || this.#continuation?.times || this.#replayed) return;
    const { maxCompletionTokens = Number.POSITIVE_INFINITY, width } = this.request;
    if (estimated && completionTokens <= maxCompletionTokens * width * maxEstimateError) return;
    this.deps.usageDoubts.limitIgnored(deployment, limitName);
  }

  /** What the one that ended it has used: parts of others are on bills of theirs. */
  #billed(end: PricedUsage): PricedUsage {
    const last = this.#continuation?.lastUsage;
    if (!last) return end;
    const promptTokens = Math.min(last.promptTokens, end.promptTokens);
    const completionTokens = Math.min(last.completionTokens, end.completionTokens);
    return { promptTokens, completionTokens, parts: last.parts };
  }

  /** What stands in answers only while the model itself is away, and what two have made together is of none of them. */
  #cache(cached: CachedRequest, isWhole: boolean, usage: TokenUsage): void {
    const isOwn = this.#replayed === undefined && this.standIn === undefined && !this.#continuation?.times;
    if (isWhole && isOwn) cached.keep(usage, this.#dispatched?.leftOut ?? nothing);
    cached.release(this.memoryAccount);
  }

  /** Settles when the answer is kept; undefined where nobody has to wait for that. */
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

// What tells a request of its waits: closures of its own would be made for each of them, and of every request.

type AnyRequest = OpenRequest<unknown>;

/** What a server answers in JSON where bytes were asked for is read as that: it may be an error. */
function isJson({ headers }: Dispatched["response"]): boolean {
  return /^application\/(?:[\w.+-]+\+)?json\b/i.test(headers.get("content-type") ?? "");
}

function nothingMore(): void {}

/** An estimate counts four bytes as a token, and the tokens of words and of indented code are up to three times as long. */
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
