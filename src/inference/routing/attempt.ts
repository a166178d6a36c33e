// One attempt at a deployment and, once the deployment took the request, its part in the answer.

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
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { PricedUsage } from "../../policy/price.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { adaptationsFor, lastingKeys } from "../../requests/dialects/conversation/adaptations.ts";
import type { Translation } from "../../requests/dialects/translation/translation.ts";
import { brokeOff, isEngineFault, refusalOf, requireUncompressed } from "../answer/engine-refusal.ts";
import { type Asking, askingOf, chatAlone } from "../asking.ts";
import type { OverflowBill } from "../overflow/overflow.ts";
import { faultSaid, resultOf, type Tried } from "../trail-writer.ts";
import type { QueuePosition } from "./capacity.ts";
import type { Assignment } from "./deployment-state.ts";
import type { Gate, Slot } from "./gate.ts";
import type { AwaitedAnswer } from "./overdue.ts";
import type { FailureScope, Router, Workload } from "./route.ts";

export interface Dispatched {
  response: EngineResponse;
  deployment: Deployment;
  /** The model that serves the request: the requested one or a fallback. */
  model: Model;
  /** Set if the engine was asked in another format than the client's. */
  readonly translation?: Translation | undefined;
  /** Members of the client's request that the engine did not get. */
  readonly leftOut?: readonly string[];
  /** Token limit of each generation that the engine got because of a quota. */
  readonly capped?: number | undefined;
  /** The member with the engine's token limit; undefined if it got none. */
  readonly limitName?: string | undefined;
  /** Set if the deployment belongs to the model's overflow: the money owed for it, to be settled at the end. */
  readonly bill?: OverflowBill | undefined;
  /** Receives what the engine answers. */
  readonly trace?: RequestTrace | undefined;
  /** Call when the body's first byte has arrived: the time until then shows how busy the engine is. Optional. */
  firstByte(): void;
  /** Call when the body is known to be an answer: the deployment works. */
  answers(): void;
  /**
   * Ends the request's part in load and capacity figures; `failed` also suspends the deployment. `completionTokens`
   * are those of a whole answer, for measuring speed.
   */
  done(failed: boolean, completionTokens?: number): void;
  /**
   * Call in place of `done` if the body was no answer and the client got no event: suspends the deployment and asks
   * the next one, within the retry budget. `isCut` means that the body broke off, so the server may have worked.
   * Rejects with the GatewayError for the client if no deployment is left.
   */
  another(error: unknown, isCut: boolean): MaybePromise<Dispatched>;
}

/** The rest of an answer that began elsewhere, as its dispatch sees it. */
export interface Continuing {
  /** True if only the rest is requested; false if nothing was delivered and the whole answer is requested again. */
  readonly asksRest: boolean;
  /** Returns the deployments that can continue the answer. */
  candidates(ranked: readonly Deployment[]): readonly Deployment[];
  /** Asks the deployment for the rest. `whole` is the request for the whole answer. */
  sendRest(deployment: Deployment, whole: EngineRequest): MaybePromise<EngineResponse>;
}

/**
 * A request as its dispatch sees it. It is notified as events happen, because a request that ends early has no result.
 */
export interface Sender {
  readonly requestId: string;
  /**
   * Priority in queues, and at servers that accept one. Between requests of one priority, `accountId` and `partyId`
   * decide whose turn it is.
   */
  readonly priority: Priority;
  readonly accountId: string;
  /** The person or key within the account. */
  readonly partyId: string;
  /** The account for buffered bytes. */
  readonly memoryAccount: MemoryAccount;
  /** True if the gateway stores the completion, so that the engine is not asked to store it. */
  readonly recording: boolean;
  /** Seal for data that the client stores for the gateway. */
  readonly seal: AccountSeal;
  readonly workload: Workload;
  /**
   * Returns the maximum tokens of each generation that quotas allow for this model; absent or undefined if none limits
   * them.
   */
  maxTokensOf?(model: Model): number | undefined;
  /** Returns names of limits that the deployment is known to ignore. Default: none. */
  ignoredLimits?(deployment: Deployment): ReadonlySet<string>;
  /** For requests of the idle lane: see `SlotRequest`. */
  readonly onWanted?: (() => void) | undefined;
  /** The trace of the request. */
  readonly trace?: RequestTrace | undefined;
  /** Set if another deployment is looked for in the middle of an answer; absent or undefined for a whole answer. */
  readonly continuing?: Continuing | undefined;
  /** Stops the attempt until the response has arrived. */
  readonly cancellation: Cancellation;
  /** Returns the current model; undefined if it is no longer offered. */
  modelNow(id: string): Model | undefined;
  /**
   * Reports whether the request may go to the deployment, called directly before it does: this decides whether a
   * request stays local.
   */
  mayAsk(deployment: Deployment, model: Model): boolean;
  /** Returns the fallback models, best first. */
  fallbackModels(): readonly Model[];
  /**
   * Reserves the amount by which the model costs more than the requested one; returns false if a quota has too little
   * left. Absent if no reservation is needed.
   */
  affords?(model: Model): boolean | Promise<boolean>;
  /** Called when the request has to wait: `position` returns its position while it waits. */
  waits(position: () => QueuePosition | undefined): void;
  waited(ms: number): void;
  /** `sinceMs` is the monotonic time when the slot was taken, or when the engine is asked again in it. */
  sending(sinceMs: number): void;
  /**
   * Called once for each attempt: when the body is known to be an answer, or with `error` if the engine failed or
   * refused, or the client left.
   */
  attempted(deployment: Deployment, error: unknown): void;
  /** Called when a step of the request's trail ended without an engine taking the request. */
  tried(step: Tried): void;
}

export interface Refused {
  failure: GatewayError;
  /** Set if the engine had too many requests: it may be asked again when one of them has ended. */
  again: Gate | undefined;
  /** True if the server ended before it got the request, which may wait for the next start. */
  isUnsent?: boolean;
}

/** The dispatch that makes an attempt and then asks the next deployment. */
export interface AttemptDispatch {
  /** Reports whether the request may use a deployment other than the one of `model` that was asked. */
  hasChoice(model: Model): boolean;
  /** Reports whether another deployment than `asked` could be asked now. */
  hasOther(asked: Deployment): boolean;
  following(attempt: Attempt, refused: Refused): MaybePromise<Dispatched>;
  /** Takes a retry from the budget. Returns the monotonic time; undefined if none is left. */
  repeats(): number | undefined;
}

/** Maximum repetitions of one request with adaptations: some servers name one refused member at a time. */
const maxTimesAdapted = 3;
/** The member that the gateway adds to requests in the engine's own format. */
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
  /** The format in which the engine was asked. */
  #asked: Operation | undefined;
  #isStream = false;
  /** True once the body is known to be an answer. */
  #isProven = false;
  readonly #dispatch: AttemptDispatch;
  /** Milliseconds after which the attempt is overdue and given up for another, and the cancellation that ends it. */
  #limitMs = 0;
  #overdue: Cancellation | undefined;
  /** True if the time to the first byte is recorded, because another deployment could be asked. */
  #isTimed = false;
  /** Monotonic time since which the engine is asked. */
  #sinceMs: number;
  #adaptations: Asking["adaptations"];
  /** Keys of the adaptations after which the engine is asked again, because it refused the request without them. */
  #adapted: Set<string> | undefined;
  #timesAdapted = 0;
  /** The error of the last refusal after which the engine may be asked again. */
  lastRefusal: GatewayError | undefined;
  /** Set if the engine refused the request itself: no other deployment would answer differently. */
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
    const asking = this.#asking(request);
    const { operation, body, form, translation, leftOut, capped } = asking;
    this.capped = capped;
    this.limitName = asking.limitName;
    this.#adaptations = asking.adaptations;
    // The count of an earlier body of this attempt stays, because nothing is counted twice.
    if (translation) translation.promptTokens = this.translation?.promptTokens;
    this.translation = translation;
    this.leftOut = leftOut;
    this.#asked = operation;
    this.#sender.sending(this.#sinceMs);
    const sent: EngineRequest = { requestId, operation, model, body, stream, width, memoryAccount, priority };
    if (form) sent.form = form;
    if (request.answersBytes) sent.takesBytes = true;
    // A translated request is the gateway's own, so the client's headers for its own format do not apply.
    if (!translation && request.messageHeaders) sent.messageHeaders = request.messageHeaders;
    if (translation && stream && request.dialect.reportsPromptFirst && this.#timesAdapted === 0) this.#count(sent);
    if (this.trace) sent.trace = this.trace.attempt(engine, model, this.model.id);
    if (continuing?.asksRest) return continuing.sendRest(this.deployment, sent);
    // A whole answer arrives only when it is complete, and it is unknown how long that takes.
    if (!stream || !this.#dispatch.hasChoice(this.model) || !isTimed(operation))
      return engine.send(sent, this.#sender.cancellation);
    this.#isTimed = true;
    return engine.send(sent, this.#watched());
  }

  #asking(request: DecodedRequest): Asking {
    const { engine, model } = this.deployment;
    const { recording, seal, continuing, priority } = this.#sender;
    const known = this.#assignment.adapted;
    return askingOf(request, {
      engine: continuing?.asksRest ? { formats: chatAlone, isolation: engine.isolation } : engine,
      model,
      context: this.model.context,
      recording,
      seal,
      priority,
      mostTokens: this.#sender.maxTokensOf?.(this.model),
      ignoredLimits: this.#sender.ignoredLimits?.(this.deployment),
      adapted: this.#adapted && known ? known.union(this.#adapted) : (this.#adapted ?? known),
    });
  }

  /** Returns the cancellation of the attempt: the request's own, or one that also ends an overdue attempt. */
  #watched(): Cancellation {
    const { cancellation } = this.#sender;
    const limitMs = this.#slot.kind.begins.limitMs(this.#sender.workload.promptTokens);
    if (limitMs === undefined) return cancellation;
    this.#limitMs = limitMs;
    this.#overdue = new Cancellation();
    cancellation.onCancel(this);
    this.#router.overdue.add(this);
    return this.#overdue;
  }

  /** Called when the client left. */
  cancelled(): void {
    this.#overdue?.cancel(this.#sender.cancellation.reason);
  }

  /** Gives the deployment up if it is overdue, shows no sign of life, and another one could be asked. */
  checked(waitedMs: number): void {
    const { engine, model } = this.deployment;
    const state = engine.processState?.(model);
    if (state !== undefined && state !== "loaded") {
      this.checks = 0;
      return;
    }
    // If other answers are running, the engine may be busy with them, or they may be dead as well, so the limit is
    // longer.
    const limitMs = this.#limitMs * (this.#router.isAnswering(engine) ? 2 : 1);
    if (waitedMs < limitMs || this.#router.answeredSince(engine, this.#slot.sinceMs)) return;
    if (!this.#dispatch.hasOther(this.deployment)) return;
    this.#slot.kind.begins.missed();
    const seconds = Math.round(waitedMs / 1000);
    const detail = `${engine.name}: no answer began within ${seconds} s, far longer than any before`;
    const message = `The model server did not answer within ${seconds} s.`;
    this.#overdue?.cancel(new GatewayError("upstream_timeout", message, { detail }));
  }

  /** Called when the engine returned the head of an answer, or failed. */
  arrived(): void {
    if (!this.#overdue) return;
    this.#router.overdue.delete(this);
    this.#sender.cancellation.off(this);
  }

  /** Counts tokens in parallel to the request; nothing waits for the count. */
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
    if (this.#adapted) this.#assignment.adapts(lastingKeys(this.#adapted, this.#adaptations ?? []));
    if (this.#asked) this.#assignment.answers(this.#asked);
    if (!this.#assignment.isWell) this.#router.succeeded(this.deployment);
    this.#sender.attempted(this.deployment, undefined);
  }

  another(thrown: unknown, isCut: boolean): MaybePromise<Dispatched> {
    const error = thrown instanceof GatewayError ? thrown : brokeOff(thrown, this.deployment.engine);
    if (this.bill) this.#settleUnanswered(this.bill, error, isCut);
    if (error.code !== "upstream_error") this.#slot.refused();
    this.#fail("deployment");
    this.#end();
    const result = resultOf(error, false);
    this.#tried({ result: result === "unreachable" ? "broke_off" : result, said: faultSaid(error) });
    this.#sender.attempted(this.deployment, error);
    return this.#dispatch.following(this, { failure: error, again: undefined });
  }

  /**
   * Handles a refusal. Returns undefined if the engine may be asked again, because it refused something that only the
   * gateway wrote. Throws if no other deployment would answer differently.
   */
  async refused(response: EngineResponse, request: DecodedRequest): Promise<Refused | undefined> {
    const asked = this.#asked ?? request.operation;
    const { error, final, said, lacksEndpoint, text } = await refusalOf(response, this.deployment, request, asked);
    const refusal = { result: "refused", status: response.status, said } as const;
    // The engine read the request and named its fault, so the engine works.
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
    // A busy engine, or one without this endpoint, is not broken.
    if (again || (lacksEndpoint && this.#assignment.lacks(asked))) this.#release();
    else this.#fail("deployment");
    this.#end();
    this.#tried(refusal);
    this.#sender.attempted(this.deployment, error);
    return { failure: error, again: again ? this.#slot.gate : undefined };
  }

  /**
   * Decides with which adaptations the request is sent again after this refusal. Returns the monotonic time; undefined
   * if there is nothing to adapt, or no retry is left.
   */
  #adapt(status: number, text: string, request: DecodedRequest): number | undefined {
    if ((status !== 400 && status !== 422) || this.#timesAdapted === maxTimesAdapted) return undefined;
    const adaptations = this.#adaptations;
    if (!adaptations || this.#sender.cancellation.cancelled) return undefined;
    // The body is written again, because keeping it during the answer would need memory.
    const written = () => (this.translation ? String(this.#asking(request).body) : usageRequest);
    const keys = adaptationsFor(text, adaptations, written);
    const sinceMs = keys.length === 0 ? undefined : this.#dispatch.repeats();
    if (sinceMs === undefined) return undefined;
    this.#adapted = new Set([...(this.#adapted ?? []), ...keys]);
    this.#timesAdapted++;
    return sinceMs;
  }

  /** Handles a failure. Returns undefined if the engine is not at fault. */
  failed(error: unknown): Refused | undefined {
    if (this.bill) this.#settle(this.bill, error);
    const isFault = !this.#sender.cancellation.cancelled && error instanceof GatewayError && isEngineFault(error);
    const isUnsent = isFault && error instanceof NotRunningError && !this.#slot.gate.isOpen;
    if (isUnsent) this.#release();
    else if (isFault) {
      if (error.code === "upstream_timeout") this.#slot.refused();
      // An unreachable engine serves none of its models; a silent one, or one that reports a failure, may serve others.
      this.#fail(error.code === "upstream_error" ? "engine" : "deployment");
    } else {
      this.#release();
    }
    this.#end();
    const { cancelled } = this.#sender.cancellation;
    this.#tried(this.#refusal ?? { result: resultOf(error, cancelled), said: faultSaid(error) });
    this.#sender.attempted(this.deployment, error);
    return isFault ? { failure: error, again: undefined, isUnsent } : undefined;
  }

  /**
   * The engine may have read the prompt before the request ended or became overdue, and may have written any part of a
   * whole answer.
   */
  #settle(bill: OverflowBill, error: unknown): void {
    const isLate = error instanceof GatewayError && error.code === "upstream_timeout";
    if (!this.#sender.cancellation.cancelled && !isLate) bill.settle(undefined);
    else if (this.#isStream) bill.settle(this.#promptAlone);
    else bill.keep();
  }

  /** A server that completed its response without an answer has used nothing; one that broke off may have. */
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

  done(failed: boolean, completionTokens?: number): void {
    // The time of an abandoned answer shows nothing.
    const isMeasured = !failed && !this.#sender.cancellation.cancelled;
    if (isMeasured) this.#began();
    if (failed) this.#fail("deployment");
    else if (!this.#isProven) this.#endUnproven();
    this.#end(isMeasured ? completionTokens : undefined);
  }

  /**
   * Ends an attempt whose client left before the body was known to be an answer, or whose fault is the request's own.
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

  #tried(step: Outcome): void {
    this.#sender.tried({ ...step, deployment: this.deployment, model: this.model.id, sinceMs: this.#sinceMs });
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

/** Reports whether the time of an operation grows with the tokens of its request. */
function isTimed(operation: Operation): boolean {
  return generates[operation] || operation === "embedding";
}

/** Reports a lack of capacity to the capacity figures. Returns whether the engine works on other requests meanwhile. */
function isBusy(error: GatewayError, slot: Slot): boolean {
  if (error.code !== "service_unavailable" && error.code !== "upstream_timeout") return false;
  slot.refused();
  return error.code === "service_unavailable" && slot.gate.inFlight > 0;
}
