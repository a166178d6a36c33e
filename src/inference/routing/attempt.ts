// One deployment being asked, and, once it took the request, its part in the answer.

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
import type { Translation } from "../../requests/dialects/translation/translation.ts";
import { brokeOff, isEngineFault, refusalOf, requireUncompressed } from "../answer/engine-refusal.ts";
import { askingOf, chatAlone } from "../asking.ts";
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
  /** The model that serves it: the one that was asked for, or one that stands in for it. */
  model: Model;
  /** Where the engine was asked in another format than the client's. */
  readonly translation?: Translation | undefined;
  /** Members of the client's request that the engine did not get. */
  readonly leftOut?: readonly string[];
  /** The tokens of each generation that the engine was told, as a quota allows no more. */
  readonly capped?: number | undefined;
  /** The member by which the engine was told how long the answer may be; undefined where it was not. */
  readonly limitName?: string | undefined;
  /** Where it went to a deployment that its model overflows to: owes what is used there, to be settled at the end. */
  readonly bill?: OverflowBill | undefined;
  /** Told of what its engine answers. */
  readonly trace?: RequestTrace | undefined;
  /** Call when the body's first byte is here: how soon it comes tells how busy the engine is. May be left out. */
  firstByte(): void;
  /** Call when the body is known to be an answer, or to begin one: the deployment works. */
  answers(): void;
  /**
   * Ends the request's part in the load and capacity figures; `failed` also puts the deployment to rest.
   * `completionTokens`: of an answer that came whole, for how fast it is.
   */
  done(failed: boolean, completionTokens?: number): void;
  /**
   * Call in place of `done` where the body was no answer and the client was sent no event: puts the deployment to rest and asks
   * the next one, within the retry budget. `isCut`: the body broke off, so the server may have worked. Rejects with the
   * GatewayError for the client where no deployment is left.
   */
  another(error: unknown, isCut: boolean): MaybePromise<Dispatched>;
}

/** The rest of an answer that was begun elsewhere, as its dispatch sees it. */
export interface Continuing {
  /** Whether the rest is asked for; else all of it once more, as nothing was delivered. */
  readonly asksRest: boolean;
  /** Those that can go on with it. */
  candidates(ranked: readonly Deployment[]): readonly Deployment[];
  /** Asks the deployment for the rest; `whole` asks for all of the answer. */
  sendRest(deployment: Deployment, whole: EngineRequest): MaybePromise<EngineResponse>;
}

/** A request as its dispatch sees it; told as things happen, as no result tells of one that ended before it had one. */
export interface Sender {
  readonly requestId: string;
  /** How urgent it is where requests wait, and for servers that ask; then whose turn it is. */
  readonly priority: Priority;
  readonly accountId: string;
  /** The person or key within the account. */
  readonly partyId: string;
  /** On whose account bytes are held for it. */
  readonly memoryAccount: MemoryAccount;
  /** Whether the gateway keeps the completion: then the engine is not asked to keep it as well. */
  readonly recording: boolean;
  /** For what the client keeps for us. */
  readonly seal: AccountSeal;
  readonly workload: Workload;
  /** The most tokens of each generation that quotas which end an answer allow of this model; left out, or undefined: none does. */
  maxTokensOf?(model: Model): number | undefined;
  /** Names of limits that the deployment is known to ignore; left out: none. */
  ignoredLimits?(deployment: Deployment): ReadonlySet<string>;
  /** Only for a request of the idle lane: see `PlaceRequest`. */
  readonly onWanted?: (() => void) | undefined;
  /** Where it is traced. */
  readonly trace?: RequestTrace | undefined;
  /** Where another deployment is looked for in the middle of an answer; left out, or undefined: it is a whole one. */
  readonly continuing?: Continuing | undefined;
  /** Stops it until the response is here. */
  readonly cancellation: Cancellation;
  /** Undefined where the model is no longer offered. */
  modelNow(id: string): Model | undefined;
  /** Whether the request may still go there, asked just before it does: what one must not leave is decided there. */
  mayAsk(deployment: Deployment, model: Model): boolean;
  /** Models that may stand in for the one that was asked for, best first. */
  standIns(): readonly Model[];
  /** Sets aside what the model costs more than the one that was asked for; false where a quota has less left. Left out: it may be asked. */
  affords?(model: Model): boolean | Promise<boolean>;
  /** It has to wait: `standing` tells where it stands, for as long as it does. */
  waits(standing: () => QueuePosition | undefined): void;
  waited(ms: number): void;
  /** `sinceMs`: monotonic milliseconds of when its place was taken. */
  sending(sinceMs: number): void;
  /** An engine gave the head of an answer; `error`: or failed, or refused. */
  attempted(deployment: Deployment, error: unknown): void;
  /** A step of the request's trail ended, and was not that an engine took it. */
  tried(step: Tried): void;
}

export interface Refused {
  failure: GatewayError;
  /** Where it had too many others at the moment: it may be asked again once one of them has ended. */
  again: Gate | undefined;
  /** The server ended before it got the request, which may wait for the next start. */
  isUnsent?: boolean;
}

/** The dispatch that made an attempt, and asks the deployment after it. */
export interface AttemptDispatch {
  /** Reports whether the request may have a deployment beside the one of `model` that was asked. */
  hasChoice(model: Model): boolean;
  /** Reports whether another deployment than `asked` could be asked now. */
  hasOther(asked: Deployment): boolean;
  following(attempt: Attempt, refused: Refused): MaybePromise<Dispatched>;
}

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
  /** Milliseconds and its means, where the attempt is given up for another one once it is overdue. */
  #limitMs = 0;
  #overdue: Cancellation | undefined;
  /** True if the attempt's time to its first byte is recorded, because another deployment could be asked. */
  #isTimed = false;
  /** The engine refused the request itself: no other deployment would answer otherwise. */
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
    const { requestId, recording, memoryAccount, seal } = this.#sender;
    const { context } = this.model;
    const mostTokens = this.#sender.maxTokensOf?.(this.model);
    const { continuing, priority } = this.#sender;
    const spoken = continuing?.asksRest ? { formats: chatAlone, isolation: engine.isolation } : engine;
    const ignoredLimits = this.#sender.ignoredLimits?.(this.deployment);
    const options = { engine: spoken, model, context, recording, seal, mostTokens, priority, ignoredLimits };
    const asking = askingOf(request, options);
    const { operation, body, form, translation, leftOut, capped } = asking;
    this.capped = capped;
    this.limitName = asking.limitName;
    this.translation = translation;
    this.leftOut = leftOut;
    this.#asked = operation;
    this.#sender.sending(this.#slot.sinceMs);
    const sent: EngineRequest = { requestId, operation, model, body, stream, width, memoryAccount, priority };
    if (form) sent.form = form;
    if (request.answersBytes) sent.takesBytes = true;
    // A translated request is ours: what its client says of its own is about another one.
    if (!translation && request.messageHeaders) sent.messageHeaders = request.messageHeaders;
    if (translation && stream && request.dialect.reportsPromptFirst) this.#count(sent, translation);
    if (this.trace) sent.trace = this.trace.attempt(engine, model, this.model.id);
    if (continuing?.asksRest) return continuing.sendRest(this.deployment, sent);
    // A whole answer begins when it is complete: nobody knows how long that takes.
    if (!stream || !this.#dispatch.hasChoice(this.model) || !isTimed(operation))
      return engine.send(sent, this.#sender.cancellation);
    this.#isTimed = true;
    return engine.send(sent, this.#watched());
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

  /** The client left. */
  cancelled(): void {
    this.#overdue?.cancel(this.#sender.cancellation.reason);
  }

  /** Gives the deployment up where it is overdue, shows no sign of life, and another one could be asked. */
  checked(waitedMs: number): void {
    const { engine, model } = this.deployment;
    const state = engine.processState?.(model);
    if (state !== undefined && state !== "loaded") {
      this.checks = 0;
      return;
    }
    // Answers under way may be all that it works on, or may be as dead as this one.
    const limitMs = this.#limitMs * (this.#router.isAnswering(engine) ? 2 : 1);
    if (waitedMs < limitMs || this.#router.answeredSince(engine, this.#slot.sinceMs)) return;
    if (!this.#dispatch.hasOther(this.deployment)) return;
    this.#slot.kind.begins.missed();
    const seconds = Math.round(waitedMs / 1000);
    const detail = `${engine.name}: no answer began within ${seconds} s, far longer than any before`;
    const message = `The model server did not answer within ${seconds} s.`;
    this.#overdue?.cancel(new GatewayError("upstream_timeout", message, { detail }));
  }

  /** The engine gave the head of an answer, or failed. */
  arrived(): void {
    if (!this.#overdue) return;
    this.#router.overdue.delete(this);
    this.#sender.cancellation.off(this);
  }

  /** Beside the request itself: it is waited for by nobody. */
  #count(sent: EngineRequest, translation: Translation): void {
    const { operation } = sent;
    if (!isConversation(operation)) return;
    this.deployment.engine.countTokens?.({ ...sent, operation }, this.#sender.cancellation).then(
      (tokens) => {
        translation.promptTokens = tokens;
      },
      // The estimate stands.
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

  /** Throws where no other deployment would answer otherwise. */
  async refused(response: EngineResponse, request: DecodedRequest): Promise<Refused> {
    const asked = this.#asked ?? request.operation;
    const { error, final, said, lacksEndpoint } = await refusalOf(response, this.deployment, request, asked);
    this.bill?.settle(undefined);
    const refusal = { result: "refused", status: response.status, said } as const;
    if (final) {
      // It read the request, and said what is wrong with it: it works.
      this.#router.succeeded(this.deployment);
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

  /** Undefined where it is no fault of the engine. */
  failed(error: unknown): Refused | undefined {
    if (this.bill) this.#settle(this.bill, error);
    const isFault = !this.#sender.cancellation.cancelled && error instanceof GatewayError && isEngineFault(error);
    const isUnsent = isFault && error instanceof NotRunningError && !this.#slot.gate.isOpen;
    if (isUnsent) this.#release();
    else if (isFault) {
      if (error.code === "upstream_timeout") this.#slot.refused();
      // What cannot be reached serves none of its models; what is silent, or says that it cannot, may serve others.
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
   * It may have read the prompt before it was left, or was silent for too long; and of an answer that comes whole it may have
   * written any part.
   */
  #settle(bill: OverflowBill, error: unknown): void {
    const isLate = error instanceof GatewayError && error.code === "upstream_timeout";
    if (!this.#sender.cancellation.cancelled && !isLate) bill.settle(undefined);
    else if (this.#isStream) bill.settle(this.#promptAlone);
    else bill.keep();
  }

  /** A server that said what it had to say and gave no answer has used nothing; one that broke off may have. */
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
    // An answer that nobody waited for says nothing of how long it takes.
    const isMeasured = !failed && !this.#sender.cancellation.cancelled;
    if (isMeasured) this.#began();
    if (failed) this.#fail("deployment");
    else if (!this.#isProven) this.#endUnproven();
    this.#end(isMeasured ? completionTokens : undefined);
  }

  /** Its client left before it was known what the body is, or the fault is the request's own. */
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
    this.#sender.tried({ ...step, deployment: this.deployment, model: this.model.id, sinceMs: this.#slot.sinceMs });
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

/** Tells the capacity figures of a refusal for want of capacity; whether the engine works on others meanwhile. */
function isBusy(error: GatewayError, slot: Slot): boolean {
  if (error.code !== "service_unavailable" && error.code !== "upstream_timeout") return false;
  slot.refused();
  return error.code === "service_unavailable" && slot.gate.inFlight > 0;
}
