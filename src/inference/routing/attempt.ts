// One attempt of a request at a deployment, from sending to the end of the answer.

import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { type CancelListener, Cancellation } from "../../base/cancellation.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import { GatewayError } from "../../base/errors.ts";
import { noIndex } from "../../base/indexed-set.ts";
import { type EngineRequest, type EngineResponse, NotRunningError } from "../../domain/models/engine.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import { generates, isConversation, type Operation } from "../../domain/models/operation.ts";
import type { Priority } from "../../domain/models/policies/priority.ts";
import type { AccountSeal } from "../../domain/seal.ts";
import type { AttemptCause } from "../../domain/usage/attempt-health.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { PricedUsage } from "../../policy/price.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { adaptationsFor, lastingKeys, trialKeys } from "../../requests/dialects/conversation/adaptations.ts";
import type { Translation } from "../../requests/dialects/translation/translation.ts";
import { brokeOff, isEngineFault, refusalOf, requireUncompressed } from "../answer/engine-refusal.ts";
import { type Asking, askingOf, chatAlone } from "../asking.ts";
import type { OverflowBill } from "../overflow/overflow.ts";
import { faultSaid, resultOf, type Tried } from "../trail-writer.ts";
import { causeOf } from "./attempt-cause.ts";
import type { QueuePosition } from "./capacity.ts";
import type { Assignment } from "./deployment-state.ts";
import type { Gate, Slot } from "./gate.ts";
import type { AwaitedAnswer } from "./overdue.ts";
import type { FailureScope, Router, Workload } from "./route.ts";

export interface Dispatched {
  response: EngineResponse;
  deployment: Deployment;
  /** The model that serves the request. It is the requested model or a fallback. */
  model: Model;
  /** The translation of the answer. Set if the engine got the request in another API format than the client's. */
  readonly translation?: Translation | undefined;
  /** Members of the client's request that the gateway removed for the engine. */
  readonly leftOut?: readonly string[];
  /** The token limit of each generation that the gateway set because of a quota. */
  readonly capped?: number | undefined;
  /** Name of the member in which the engine got the token limit. Undefined without a limit. */
  readonly limitName?: string | undefined;
  /** The reserved money if this is an overflow deployment. It is settled at the end of the attempt. */
  readonly bill?: OverflowBill | undefined;
  /** The trace in which the engine's answer is recorded. */
  readonly trace?: RequestTrace | undefined;
  /** Must be called when the first byte of the body has arrived. The time until then shows how busy the engine is. */
  firstByte(): void;
  /** Must be called when the body is known to be an answer, which proves that the deployment works. */
  answers(): void;
  /**
   * Ends the attempt in the figures of load and capacity. If `failed`, also suspends the deployment. `error` is the
   * reason. `completionTokens` is set for whole answers, to measure the speed.
   */
  done(failed: boolean, completionTokens?: number, error?: unknown): void;
  /**
   * Must be called instead of `done` if the body was no answer and the client got nothing. Suspends the deployment, and
   * tries the next one within the retry budget. `isCut` means that the body broke off, so the server may have generated
   * some of it. Rejects with a GatewayError if no deployment is left.
   */
  another(error: unknown, isCut: boolean): MaybePromise<Dispatched>;
}

/** A broken stream that another deployment is to continue. */
export interface Continuing {
  /**
   * True if only the rest of the answer is requested. False if nothing was delivered, so that the whole answer is
   * requested again.
   */
  readonly asksRest: boolean;
  /** Returns the deployments that can continue the answer. */
  candidates(ranked: readonly Deployment[]): readonly Deployment[];
  /** Sends the request for the rest of the answer to the deployment. `whole` is the request for the whole answer. */
  sendRest(deployment: Deployment, whole: EngineRequest): MaybePromise<EngineResponse>;
}

/**
 * The facts about a request that an attempt needs, and the callbacks of the request. Facts are reported by callbacks
 * because a cancelled request gets no result.
 */
export interface Sender {
  readonly requestId: string;
  /**
   * Priority in queues, and at servers that support priorities. Requests of equal priority share slots fairly by
   * `accountId` and `partyId`.
   */
  readonly priority: Priority;
  readonly accountId: string;
  /** Id of the person or key within the account. */
  readonly partyId: string;
  /** The memory account for buffered bytes. */
  readonly memoryAccount: MemoryAccount;
  /** True if the gateway stores the completion, so that the engine must not. */
  readonly recording: boolean;
  /** Encrypts state that clients store on behalf of the gateway. */
  readonly seal: AccountSeal;
  readonly workload: Workload;
  /** Returns the maximum tokens of each generation that quotas leave for this model. Undefined without a limit. */
  maxTokensOf?(model: Model): number | undefined;
  /** Returns the names of token limits that the deployment is known to ignore. Default: none. */
  ignoredLimits?(deployment: Deployment): ReadonlySet<string>;
  /** Set for background requests (the idle lane). Called if a client's request needs the slot. */
  readonly onWanted?: (() => void) | undefined;
  /** The trace of the request. */
  readonly trace?: RequestTrace | undefined;
  /** Set while a broken stream is continued at another deployment. */
  readonly continuing?: Continuing | undefined;
  /** Cancels the attempt. Has no effect once the response has arrived. */
  readonly cancellation: Cancellation;
  /** Returns the model as it is configured now, or undefined if it was removed. */
  modelNow(id: string): Model | undefined;
  /**
   * Reports whether the request may go to the deployment. Must be called directly before the request is sent, because
   * this check keeps local requests local.
   */
  mayAsk(deployment: Deployment, model: Model): boolean;
  /** Returns the fallback models, best first. */
  fallbackModels(): readonly Model[];
  /**
   * Reserves the additional cost of a fallback model. Returns false if a quota has too little left. Missing if no
   * reservation is needed.
   */
  affords?(model: Model): boolean | Promise<boolean>;
  /** Called when the request has to wait. `position` returns its position in the queue. */
  waits(position: () => QueuePosition | undefined): void;
  waited(ms: number): void;
  /**
   * Called when the request is sent. `sinceMs` is the time in monotonic milliseconds at which the slot was taken, or at
   * which the engine is asked again.
   */
  sending(sinceMs: number): void;
  /**
   * Called once for each attempt: when the engine has answered, or with `error` if it failed or refused or the client
   * left. `cause` is set if the engine is at fault.
   */
  attempted(deployment: Deployment, error: unknown, cause?: AttemptCause): void;
  /**
   * Called with an entry for the trail (the log of attempts) when an attempt ended without an answer. Returns known
   * phrases from the engine's message, which operators of all accounts may see.
   */
  tried(step: Tried): string | null;
}

export interface Refused {
  failure: GatewayError;
  /** The gate of an engine that had too many requests. Once one of them has ended, the engine may be asked again. */
  again: Gate | undefined;
  /**
   * True if the server stopped before it received the request. The request may then wait until the server starts again.
   */
  isUnsent?: boolean;
}

/** Makes attempts at one deployment after another. */
export interface AttemptDispatch {
  /** Reports whether the request may use any deployment other than the one that was asked. */
  hasChoice(model: Model): boolean;
  /** Reports whether a deployment other than `asked` could get the request now. */
  hasOther(asked: Deployment): boolean;
  following(attempt: Attempt, refused: Refused): MaybePromise<Dispatched>;
  /**
   * Takes one repetition from the retry budget. Returns the current monotonic milliseconds, or undefined if the budget
   * is used up.
   */
  repeats(): number | undefined;
}

/**
 * Maximum repetitions of one request with other adaptations. Some servers name only one refused member at a time, and
 * an agent's history may contain several.
 */
const maxTimesAdapted = 6;
/** The member that the gateway itself adds to requests that are not translated. */
const usageRequest = '{"stream_options":{"include_usage":true}}';

type Outcome = Pick<Tried, "result" | "status" | "said">;

export class Attempt implements Dispatched, AwaitedAnswer, CancelListener {
  setIndex = noIndex;
  checks = 0;
  readonly model: Model;
  translation: Translation | undefined;
  leftOut: readonly string[] = [];
  capped: number | undefined;
  limitName: string | undefined;
  readonly bill: OverflowBill | undefined;
  readonly #slot: Slot;
  readonly #router: Router;
  readonly #sender: Sender;
  readonly #assignment: Assignment;
  #response: EngineResponse | undefined;
  /** The API format in which the engine was asked. */
  #asked: Operation | undefined;
  #isStream = false;
  /** True once the body is known to be an answer and not an error. */
  #isProven = false;
  readonly #dispatch: AttemptDispatch;
  /**
   * Milliseconds after which the attempt is overdue. An overdue attempt is cancelled, and another deployment is asked.
   */
  #limitMs = 0;
  #overdue: Cancellation | undefined;
  /** True if the time to the first byte is recorded. This is done only if another deployment could be asked. */
  #isTimed = false;
  /** Time in monotonic milliseconds at which the slot was taken, or at which the engine was asked again. */
  #sinceMs: number;
  #adaptations: Asking["adaptations"];
  /** Keys of the adaptations with which the engine is asked again, because it refused the request without them. */
  adapted: ReadonlySet<string> | undefined;
  /** Keys of the adaptations in the body that was sent last. */
  #written: ReadonlySet<string> | undefined;
  #timesAdapted = 0;
  /** The error of the last refusal, if the engine may be asked again after it. */
  lastRefusal: GatewayError | undefined;
  /** The refusal of the request as invalid. Set if other deployments would refuse the request too. */
  #refusal: Outcome | undefined;

  constructor(
    slot: Slot,
    model: Model,
    router: Router,
    sender: Sender,
    bill: OverflowBill | undefined,
    dispatch: AttemptDispatch,
  ) {
    this.#dispatch = dispatch;
    this.model = model;
    this.bill = bill;
    this.#slot = slot;
    this.#sinceMs = slot.sinceMs;
    this.#router = router;
    this.#sender = sender;
    this.#assignment = router.begin(slot.deployment, model, sender.workload, slot.sinceMs);
  }

  get deployment(): Deployment {
    return this.#slot.deployment;
  }

  get trace(): RequestTrace | undefined {
    return this.#sender.trace;
  }

  get response(): EngineResponse {
    if (!this.#response) throw new Error("The deployment was not asked yet.");
    return this.#response;
  }

  send(request: DecodedRequest): MaybePromise<EngineResponse> {
    const { engine, model } = this.deployment;
    const { stream, width } = request;
    this.#isStream = stream;
    const { requestId, memoryAccount, continuing, priority } = this.#sender;
    const known = this.#assignment.adapted;
    this.#written = this.adapted && known ? known.union(this.adapted) : (this.adapted ?? known);
    const asking = this.#asking(request);
    const { operation, body, form, translation, leftOut, capped } = asking;
    this.capped = capped;
    this.limitName = asking.limitName;
    this.#adaptations = asking.adaptations;
    // If the prompt's tokens were counted for an earlier body of this attempt, the count is reused, because nothing is
    // counted twice.
    if (translation) translation.promptTokens = this.translation?.promptTokens;
    this.translation = translation;
    this.leftOut = leftOut;
    this.#asked = operation;
    this.#sender.sending(this.#sinceMs);
    const sent: EngineRequest = { requestId, operation, model, body, stream, width, memoryAccount, priority };
    if (form) sent.form = form;
    if (request.answersBytes) sent.takesBytes = true;
    // The client's headers belong to its own API format, so they do not apply to a translated request.
    if (!translation && request.messageHeaders) sent.messageHeaders = request.messageHeaders;
    if (translation && stream && request.dialect.reportsPromptFirst && this.#timesAdapted === 0) this.#count(sent);
    if (this.trace) sent.trace = this.trace.attempt(engine, model, this.model.id);
    if (continuing?.asksRest) return continuing.sendRest(this.deployment, sent);
    // The attempt may only be cancelled as overdue if it is streamed, because the time of a whole answer cannot be
    // predicted.
    if (!stream || !this.#dispatch.hasChoice(this.model) || !isTimed(operation))
      return engine.send(sent, this.#sender.cancellation);
    this.#isTimed = true;
    return engine.send(sent, this.#watched());
  }

  #asking(request: DecodedRequest): Asking {
    const { engine, model } = this.deployment;
    const { recording, seal, continuing, priority } = this.#sender;
    return askingOf(request, {
      engine: continuing?.asksRest ? { formats: chatAlone, isolation: engine.isolation } : engine,
      model,
      context: this.model.context,
      recording,
      seal,
      priority,
      mostTokens: this.#sender.maxTokensOf?.(this.model),
      ignoredLimits: this.#sender.ignoredLimits?.(this.deployment),
      adapted: this.#written,
    });
  }

  /**
   * Returns the cancellation for the attempt. It is the request's own, or a separate one that is also cancelled if the
   * attempt is overdue.
   */
  #watched(): Cancellation {
    const { cancellation } = this.#sender;
    const limitMs = this.#slot.kind.begins.limitMs(this.#sender.workload.promptTokens);
    if (limitMs === undefined) return cancellation;
    this.#limitMs = limitMs;
    this.#overdue = new Cancellation();
    // If the request is repeated, waiting begins anew.
    this.checks = 0;
    cancellation.onCancel(this);
    this.#router.overdue.add(this);
    return this.#overdue;
  }

  /** Called when the request is cancelled, for example because the client left. */
  cancelled(): void {
    this.#overdue?.cancel(this.#sender.cancellation.reason);
  }

  /**
   * Cancels the attempt if it is overdue, if the engine has begun no other answer meanwhile, and if another deployment
   * could be asked.
   */
  checked(waitedMs: number): void {
    const { engine, model } = this.deployment;
    const state = engine.processState?.(model);
    if (state !== undefined && state !== "loaded") {
      this.checks = 0;
      return;
    }
    // While the engine is sending other answers, it may just be busy, so the limit is doubled.
    const limitMs = this.#limitMs * (this.#router.isAnswering(engine) ? 2 : 1);
    if (waitedMs < limitMs || this.#router.answeredSince(engine, this.#slot.sinceMs)) return;
    if (!this.#dispatch.hasOther(this.deployment)) return;
    this.#slot.kind.begins.missed();
    const seconds = Math.round(waitedMs / 1000);
    const detail = `${engine.name}: no answer began within ${seconds} s, far longer than any before`;
    const message = `The model server did not answer within ${seconds} s.`;
    this.#overdue?.cancel(new GatewayError("upstream_timeout", message, { detail }));
  }

  /** Called when the engine returned response headers, or failed. */
  arrived(): void {
    if (!this.#overdue) return;
    this.#router.overdue.delete(this);
    this.#sender.cancellation.off(this);
  }

  /** Counts the prompt's tokens while the request runs. Nothing waits for the count. */
  #count(sent: EngineRequest): void {
    const { operation } = sent;
    if (!isConversation(operation)) return;
    this.deployment.engine.countTokens?.({ ...sent, operation }, this.#sender.cancellation).then(
      (tokens) => {
        if (this.translation) this.translation.promptTokens = tokens;
      },
      // If the count fails, the estimate remains.
      () => {},
    );
  }

  taken(response: EngineResponse): Dispatched {
    requireUncompressed(response, this.deployment.engine);
    this.#response = response;
    return this;
  }

  answers(): void {
    if (this.#isProven) return;
    this.#isProven = true;
    if (this.adapted) this.#assignment.adapts(lastingKeys(this.adapted, this.#adaptations ?? []));
    if (this.#asked) this.#assignment.answers(this.#asked);
    if (!this.#assignment.isWell) this.#router.succeeded(this.deployment);
    this.#sender.attempted(this.deployment, undefined);
  }

  another(thrown: unknown, isCut: boolean): MaybePromise<Dispatched> {
    const error = thrown instanceof GatewayError ? thrown : brokeOff(thrown, this.deployment.engine);
    if (this.bill) this.#settleUnanswered(this.bill, error, isCut);
    if (error.code !== "upstream_error") this.#slot.refused();
    this.#fail("deployment");
    const result = resultOf(error, false);
    const step: Outcome = { result: result === "unreachable" ? "broke_off" : result, said: faultSaid(error) };
    this.#end();
    this.#failedAs(step, error, causeOf(error, undefined, "no_answer"));
    return this.#dispatch.following(this, { failure: error, again: undefined });
  }

  /**
   * Handles a refusal by the engine. Returns undefined if the engine may be asked again, because it refused only what
   * the gateway itself added. Throws if other deployments would refuse the request too.
   */
  async refused(response: EngineResponse, request: DecodedRequest): Promise<Refused | undefined> {
    const asked = this.#asked ?? request.operation;
    const { error, final, said, lacksEndpoint, text } = await refusalOf(response, this.deployment, request, asked);
    const refusal = { result: "refused", status: response.status, said } as const;
    // The engine found a fault in the request, so the engine itself works.
    if (final) this.#router.succeeded(this.deployment);
    const againMs = final ? this.#adapt(response.status, text, request) : undefined;
    if (againMs !== undefined) {
      this.#tried(refusal);
      this.#sinceMs = againMs;
      this.#sender.attempted(this.deployment, error);
      this.lastRefusal = error;
      return undefined;
    }
    this.bill?.settle(undefined);
    if (final) {
      this.#refusal = refusal;
      throw error;
    }
    const again = isBusy(error, this.#slot) && response.headers.get("retry-after") === null;
    // An engine is not suspended if it is merely busy, or if it merely lacks this endpoint.
    const lacksOnlyThis = lacksEndpoint === true && this.#assignment.lacks(asked);
    if (again || lacksOnlyThis) this.#release();
    else this.#fail("deployment");
    this.#end();
    this.#failedAs(refusal, error, lacksOnlyThis ? undefined : causeOf(error, response.status, "server_error"));
    return { failure: error, again: again ? this.#slot.gate : undefined };
  }

  /**
   * Decides with which adaptations the refused request is sent again. Returns the monotonic milliseconds of the
   * repetition. Returns undefined if nothing can be adapted, or no repetition is left.
   */
  #adapt(status: number, text: string, request: DecodedRequest): number | undefined {
    if ((status !== 400 && status !== 422) || this.#timesAdapted === maxTimesAdapted) return undefined;
    const adaptations = this.#adaptations;
    if (!adaptations || this.#sender.cancellation.cancelled) return undefined;
    // The body is built again here. Storing it during the attempt would use memory.
    const written = () => (this.translation ? String(this.#asking(request).body) : usageRequest);
    const keys = adaptationsFor(text, adaptations, written);
    const sinceMs = keys.length === 0 ? undefined : this.#dispatch.repeats();
    if (sinceMs === undefined) return undefined;
    this.adapted = new Set([...(this.adapted ?? []), ...keys]);
    this.#assignment.triesAdaptations(trialKeys(new Set(keys), adaptations));
    this.#timesAdapted++;
    return sinceMs;
  }

  /** Handles a failed attempt. Returns undefined if the engine is not at fault. */
  failed(error: unknown): Refused | undefined {
    if (this.bill) this.#settle(this.bill, error);
    const isFault = !this.#sender.cancellation.cancelled && error instanceof GatewayError && isEngineFault(error);
    const isUnsent = isFault && error instanceof NotRunningError && !this.#slot.gate.isOpen;
    if (isUnsent) this.#release();
    else if (isFault) {
      if (error.code === "upstream_timeout") this.#slot.refused();
      // If the engine is unreachable, all of its models are suspended. If it is silent or reports an error, its other
      // models may work.
      this.#fail(error.code === "upstream_error" ? "engine" : "deployment");
    } else {
      this.#release();
    }
    const { cancelled } = this.#sender.cancellation;
    const step = this.#refusal ?? { result: resultOf(error, cancelled), said: faultSaid(error) };
    this.#end();
    this.#failedAs(step, error, isFault && !isUnsent ? causeOf(error, undefined, "connection") : undefined);
    return isFault ? { failure: error, again: undefined, isUnsent } : undefined;
  }

  /**
   * Settles the reserved money of a failed attempt. If the attempt was cancelled or timed out, the engine has read the
   * prompt of a stream. The whole answer may have cost any amount if it is not streamed, so then the whole reservation
   * counts.
   */
  #settle(bill: OverflowBill, error: unknown): void {
    const isLate = error instanceof GatewayError && error.code === "upstream_timeout";
    if (!this.#sender.cancellation.cancelled && !isLate) bill.settle(undefined);
    else if (this.#isStream) bill.settle(this.#promptAlone);
    else bill.keep();
  }

  /**
   * Settles the reserved money if the body was no answer. If the body was complete, nothing was used. If it broke off,
   * something may have been used.
   */
  #settleUnanswered(bill: OverflowBill, error: GatewayError, isCut: boolean): void {
    if (isCut && !this.#isStream) bill.keep();
    else bill.settle(isCut || error.code === "upstream_timeout" ? this.#promptAlone : undefined);
  }

  get #promptAlone(): PricedUsage {
    return { promptTokens: this.#sender.workload.promptTokens, completionTokens: 0, parts: undefined };
  }

  firstByte(): void {
    this.trace?.firstByte();
    this.#began();
    this.#assignment.answering();
  }

  #began(): void {
    const isFirst = this.#slot.answered();
    if (isFirst && this.#isTimed) this.#slot.kind.begins.add(this.#slot.durationMs, this.#sender.workload.promptTokens);
  }

  done(failed: boolean, completionTokens?: number, error?: unknown): void {
    // The answer time of a cancelled attempt says nothing about the engine, so it is not measured.
    const isMeasured = !failed && !this.#sender.cancellation.cancelled;
    if (isMeasured) this.#began();
    const counts = !this.#assignment.hasEnded;
    if (failed) {
      this.#fail("deployment");
      const cause = causeOf(error, undefined, "broke_off");
      if (counts) this.#router.countFailure(this.deployment, { cause, status: null, message: null });
    } else {
      if (!this.#isProven) this.#endUnproven();
      if (counts && this.#isProven) this.#assignment.worked();
    }
    this.#end(isMeasured ? completionTokens : undefined);
  }

  /**
   * Ends an attempt without a judgement on the engine, because the client left early or the request itself was at
   * fault.
   */
  #endUnproven(): void {
    const { cancelled, reason } = this.#sender.cancellation;
    if (!cancelled) {
      this.answers();
      return;
    }
    this.#release();
    this.#sender.attempted(this.deployment, reason);
  }

  /** Reports an attempt that got no answer. `cause` is undefined if the engine is not at fault. */
  #failedAs(step: Outcome, error: unknown, cause: AttemptCause | undefined): void {
    const message = this.#tried(step);
    if (cause) this.#router.countFailure(this.deployment, { cause, status: step.status ?? null, message });
    this.#sender.attempted(this.deployment, error, cause);
  }

  #tried(step: Outcome): string | null {
    return this.#sender.tried({ ...step, deployment: this.deployment, model: this.model.id, sinceMs: this.#sinceMs });
  }

  #fail(scope: FailureScope): void {
    this.#router.failed(this.deployment, scope);
  }

  #release(): void {
    if (this.#slot.isTrial) this.#router.release(this.deployment);
  }

  #end(completionTokens?: number): void {
    this.#assignment.end(completionTokens);
    this.#slot.release();
  }
}

/** Reports whether an operation takes longer if it has more tokens. */
function isTimed(operation: Operation): boolean {
  return generates[operation] || operation === "embedding";
}

/**
 * Records that the engine lacks capacity. Returns true if the engine is working on other requests, so that its capacity
 * may become free.
 */
function isBusy(error: GatewayError, slot: Slot): boolean {
  if (error.code !== "service_unavailable" && error.code !== "upstream_timeout") return false;
  slot.refused();
  return error.code === "service_unavailable" && slot.gate.inFlight > 0;
}
