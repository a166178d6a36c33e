// Sends a request to the first deployment that accepts it, of the requested model or of a fallback model.
import type { Clock } from "../../base/clock.ts";
import { Deferred, type MaybePromise, whenSettled } from "../../base/deferred.ts";
import { GatewayError } from "../../base/errors.ts";
import type { EngineResponse } from "../../domain/models/engine.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import type { Operation } from "../../domain/models/operation.ts";
import type { Priority } from "../../domain/models/policies/priority.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { isEngineFault } from "../answer/engine-refusal.ts";
import type { Overflow, OverflowBill, OverflowChoice } from "../overflow/overflow.ts";
import { Attempt, type AttemptDispatch, type Dispatched, type Refused, type Sender } from "./attempt.ts";
import type { Capacity, QueueTicket } from "./capacity.ts";
import type { Gate, Slot, SlotRequest } from "./gate.ts";
import type { RetryBudget } from "./retry-budget.ts";
import type { Router } from "./route.ts";
import { takesForms } from "./servable.ts";

export interface DispatchDeps {
  router: Router;
  capacity: Capacity;
  clock: Clock;
  /** Applies overflow policies. Required if a model has such a policy. */
  overflow?: Overflow | undefined;
}

/**
 * Maximum attempts at one deployment. An engine that is merely busy is asked again after it has answered another
 * request. Each refusal may halve the engine's unknown limit, until the limit is right.
 */
const maxAttempts = 6;

/**
 * Tries the deployments in order, each when it has a free slot. After a failure, the next deployment is tried, within
 * the model's retry budget. If all fail, rejects with the last failure. If the request itself is refused (status 400
 * and the like), no other deployment is tried. If all deployments of a model fail, are full or are suspended, its
 * fallback models follow.
 */
export function dispatch(
  request: DecodedRequest,
  model: Model,
  deps: DispatchDeps,
  sender: Sender,
): MaybePromise<Dispatched> {
  const dispatching = new Dispatching(request, model, deps, sender);
  dispatching.begin();
  return dispatching;
}

/** The state of a request that the first deployment did not serve immediately. */
class Detour {
  /** The model that is being tried, as it was at first. `offered` is the same model after changes by an operator. */
  model: Model;
  offered: Model;
  /** Fallback models that were not tried yet. */
  fallbackModels: Model[] | undefined;
  /** The failure of the requested model, stored while fallback models are tried. */
  failure: GatewayError | undefined;
  turn: QueueTicket | undefined;
  /** True if a deployment was asked and failed, so that the next attempt is a retry. */
  asked = false;
  /** Number of attempts at each deployment of the current model. `refused` is the last refusal. */
  attempts: Map<Deployment, number> | undefined;
  refused: Refused | undefined;
  /**
   * For each deployment, the adaptations with which it was last asked because it had refused the request without them.
   */
  adapted: Map<Deployment, ReadonlySet<string>> | undefined;
  /** True if the retry budget already includes the next attempt. */
  isBudgeted = false;
  /** True if a deployment that was merely busy may be asked again. */
  mayReturn = false;
  /**
   * True once the request has waited for a server to start again. It waits only once, because the request itself may
   * have crashed the server.
   */
  wasUnsent = false;
  /** Time in monotonic milliseconds since which the request has been waiting. Undefined if it never waited. */
  waitingSinceMs: number | undefined;
  /** The last decision of the overflow policy of the model. */
  choice: OverflowChoice | undefined;

  constructor(model: Model) {
    this.model = model;
    this.offered = model;
  }

  /** Resets the state, either for the next model or because an operator changed the current one. */
  begin(offered: Model): void {
    this.offered = offered;
    this.attempts = undefined;
    this.refused = undefined;
  }
}

/**
 * Processes one request in steps. Each step calls the next one directly, unless it must wait for a slot or an answer.
 */
class Dispatching extends Deferred<Dispatched> implements SlotRequest, AttemptDispatch {
  readonly #request: DecodedRequest;
  readonly #deps: DispatchDeps;
  readonly #sender: Sender;
  /** The requested model. */
  readonly #wanted: Model;
  #attempt: Attempt | undefined;
  #detour: Detour | undefined;

  constructor(request: DecodedRequest, model: Model, deps: DispatchDeps, sender: Sender) {
    super();
    this.#request = request;
    this.#deps = deps;
    this.#sender = sender;
    this.#wanted = model;
  }

  get priority(): Priority {
    return this.#sender.priority;
  }

  get accountId(): string {
    return this.#sender.accountId;
  }

  get partyId(): string {
    return this.#sender.partyId;
  }

  get operation(): Operation {
    return this.#request.operation;
  }

  get stream(): boolean {
    return this.#request.stream;
  }

  get width(): number {
    return this.#request.width;
  }

  get model(): string {
    return this.#wanted.id;
  }

  get onWanted(): (() => void) | undefined {
    return this.#sender.onWanted;
  }

  begin(): void {
    if (!this.#sender.continuing) this.#budget.requested();
    if (this.#wanted.fallbacks) this.#lineUp();
    else this.#next();
  }

  get #budget(): RetryBudget {
    return this.#deps.router.retryBudget(this.#wanted.id);
  }

  get #way(): Detour {
    this.#detour ??= new Detour(this.#wanted);
    return this.#detour;
  }

  /** Tries models with a healthy deployment first, so that no time is lost on models that would probably fail. */
  #lineUp(): void {
    const { router } = this.#deps;
    const models = [this.#wanted, ...this.#sender.fallbackModels()];
    const working = models.filter((model) => router.works(model));
    const [first = this.#wanted, ...others] = [...working, ...models.filter((model) => !working.includes(model))];
    if (first !== this.#wanted) this.#reportIdle(this.#wanted);
    this.#way.fallbackModels = others;
    this.#tryOnceAfforded(first);
  }

  #tryOnceAfforded(model: Model): void {
    const affords = this.#sender.affords?.(model) ?? true;
    if (affords instanceof Promise)
      this.#goOn(
        affords,
        (afforded) => this.#try(model, afforded),
        (error) => this.reject(error),
      );
    else this.#try(model, affords);
  }

  #try(model: Model, isAfforded: boolean): void {
    const way = this.#way;
    way.model = model;
    if (isAfforded) {
      way.begin(model);
      this.#next();
      return;
    }
    this.#sender.tried({ model: model.id, result: "over_quota" });
    this.#moveOn(way.failure ?? tooDear(this.#wanted));
  }

  /** Asks the next deployment, or waits for a slot. */
  #next(): void {
    const { router, capacity } = this.#deps;
    const { cancellation, workload } = this.#sender;
    // If the request was cancelled, no engine is asked and nothing is charged.
    if (cancellation.cancelled) {
      this.reject(cancellation.reason);
      return;
    }
    const detour = this.#detour;
    const offered = detour?.offered ?? this.#wanted;
    const all = router.order(offered, workload);
    const taking = this.#request.form ? all.filter(takesForms) : all;
    const ranked = this.#sender.continuing?.candidates(taking) ?? taking;
    const untried = detour?.attempts ? this.#untried(ranked, detour.attempts, offered.id) : ranked;
    const candidates = offered.policies?.overflow ? this.#overflowing(untried, offered) : untried;
    const refused = detour?.refused;
    if (candidates.length === 0) {
      if (!refused) this.#reportIdle(offered);
      this.#moveOn(this.#detour?.choice?.refusal ?? refused?.failure ?? notDeployed(offered));
      return;
    }
    const allowed = refused && !detour?.mayReturn ? this.#allowed(candidates, refused) : candidates;
    if (allowed.length === 0) {
      if (refused?.again) this.#waitForRoom(refused.again, candidates, refused);
      else if (refused) this.#notRetried(candidates, refused);
      return;
    }
    const slot = capacity.take(allowed, this);
    if (slot) this.#ask(slot);
    else this.#wait(allowed);
  }

  /**
   * Returns the deployments that may be tried after a failure, within the retry budget. If the last engine was merely
   * busy, leaves out deployments that were already tried.
   */
  #allowed(candidates: readonly Deployment[], { again }: Refused): readonly Deployment[] {
    const { attempts } = this.#way;
    const others = again ? candidates.filter((deployment) => !attempts?.has(deployment)) : candidates;
    return others.length > 0 && this.#mayRetry() ? others : [];
  }

  /**
   * Waits until the busy engine has answered another request, and then asks it again. If the engine became idle without
   * an answer, a retry is taken from the budget, so that an outage is not made worse.
   */
  #waitForRoom(gate: Gate, candidates: readonly Deployment[], refused: Refused): void {
    const { capacity, clock } = this.#deps;
    const way = this.#way;
    way.turn ??= capacity.arrive();
    const sinceMs = clock.monotonicMs();
    this.#goOn(
      capacity.waitForRoom(gate, way.turn, this.#sender.cancellation),
      (found) => {
        this.#sender.waited(clock.monotonicMs() - sinceMs);
        if (found === "late" || (found === "idle" && !this.#mayRetry())) {
          this.#notRetried(candidates, refused);
          return;
        }
        way.mayReturn = true;
        this.#recheck();
      },
      (error) => this.reject(error),
    );
  }

  #notRetried(candidates: readonly Deployment[], { failure }: Refused): void {
    const { id } = this.#way.offered;
    for (const deployment of candidates) this.#sender.tried({ deployment, model: id, result: "not_retried" });
    this.#moveOn(failure);
  }

  /** Takes one retry from the budget for each failure, even if it is called several times for the same failure. */
  #mayRetry(): boolean {
    const way = this.#way;
    way.isBudgeted ||= this.#budget.take();
    return way.isBudgeted;
  }

  #ask(slot: Slot): void {
    const model = this.#detour?.offered ?? this.#wanted;
    if (!this.#sender.mayAsk(slot.deployment, model)) {
      this.#giveBack(slot);
      this.#recheck();
      return;
    }
    const bill = model.policies?.overflow && this.#bill(slot, model);
    if (!(bill instanceof Promise)) {
      this.#send(slot, model, bill);
      return;
    }
    this.#goOn(
      bill,
      (made) => {
        // While the money was being reserved, the principal may have been restricted to local deployments.
        if (made && this.#sender.mayAsk(slot.deployment, model)) {
          this.#send(slot, model, made);
          return;
        }
        made?.settle(undefined);
        this.#giveBack(slot);
        this.#recheck();
      },
      (error) => {
        this.#giveBack(slot);
        this.reject(error);
      },
    );
  }

  #giveBack(slot: Slot): void {
    if (slot.isTrial) this.#deps.router.release(slot.deployment);
    slot.release();
  }

  #send(slot: Slot, model: Model, bill: OverflowBill | undefined): void {
    const { cancellation } = this.#sender;
    // The client may have left after the slot was assigned. A request that was never sent costs nothing, so it is not
    // sent now.
    if (cancellation.cancelled) {
      bill?.settle(undefined);
      this.#giveBack(slot);
      this.reject(cancellation.reason);
      return;
    }
    if (bill) this.#overflows(slot, model);
    const attempt = new Attempt(slot, model, this.#deps.router, this.#sender, bill, this);
    attempt.adapted = this.#detour?.adapted?.get(slot.deployment);
    this.#attempt = attempt;
    this.#transmit(attempt);
  }

  #transmit(attempt: Attempt): void {
    let response: MaybePromise<EngineResponse>;
    try {
      response = attempt.send(this.#request);
    } catch (error) {
      this.#failed(attempt, error);
      return;
    }
    whenSettled(response, Dispatching.#onResponse, Dispatching.#onFailure, this);
  }

  static #onResponse(response: EngineResponse, dispatching: Dispatching): void {
    if (dispatching.#attempt) dispatching.#answered(dispatching.#attempt, response);
  }

  static #onFailure(error: unknown, dispatching: Dispatching): void {
    if (dispatching.#attempt) dispatching.#failed(dispatching.#attempt, error);
  }

  hasChoice({ deployments }: Model): boolean {
    return deployments.length > 1 || this.#wanted.fallbacks !== undefined;
  }

  /**
   * Reports whether another deployment is free and the retry budget is not used up. Suspended and full deployments do
   * not count. Overflow deployments and fallback models with a price do not count either, because a quota may refuse
   * them.
   */
  hasOther(asked: Deployment): boolean {
    const { router, capacity } = this.#deps;
    if (!this.#budget.hasMore) return false;
    const { offered, attempts, fallbackModels = [] } = this.#way;
    const tried = new Map(attempts).set(asked, maxAttempts);
    const targets = new Set(offered.policies?.overflow?.to.map(({ upstream }) => upstream));
    const untried = this.#untried(offered.deployments, tried, offered.id);
    const own = untried.filter(({ engine }) => !targets.has(engine.name));
    const others = [
      ...(this.#sender.continuing?.candidates(own) ?? own),
      ...fallbackModels.flatMap(({ price, deployments }) => (price ? [] : deployments)),
    ];
    const working = others.filter((one) => router.isOpen(one.engine) && !router.resting(one));
    return working.length > 0 && capacity.expectedWaitMs(working, this) === 0;
  }

  #answered(attempt: Attempt, response: EngineResponse): void {
    attempt.arrived();
    if (response.status < 200 || response.status > 299) {
      const refusal = attempt.refused(response, this.#request);
      this.#goOn(
        refusal,
        (refused) => {
          if (refused) this.#refusedBy(attempt, refused);
          else this.#repeat(attempt);
        },
        (error) => this.#failed(attempt, error),
      );
      return;
    }
    try {
      this.resolve(attempt.taken(response));
    } catch (error) {
      this.#failed(attempt, error);
    }
  }

  /** Sends the request to the same engine again, in the same slot. */
  #repeat(attempt: Attempt): void {
    const { cancellation } = this.#sender;
    if (cancellation.cancelled) this.#failed(attempt, cancellation.reason);
    else if (this.#sender.mayAsk(attempt.deployment, attempt.model)) this.#transmit(attempt);
    else this.#failed(attempt, attempt.lastRefusal);
  }

  repeats(): number | undefined {
    return this.#budget.takeRepetition() ? this.#deps.clock.monotonicMs() : undefined;
  }

  #failed(attempt: Attempt, error: unknown): void {
    attempt.arrived();
    try {
      const refused = attempt.failed(error);
      if (refused) this.#refusedBy(attempt, refused);
      else this.reject(error);
    } catch (fault) {
      this.reject(fault);
    }
  }

  /**
   * Tries another deployment after an attempt gave no answer. This object has already settled, so a new one takes over
   * its state.
   */
  following(attempt: Attempt, refused: Refused): MaybePromise<Dispatched> {
    const following = new Dispatching(this.#request, this.#wanted, this.#deps, this.#sender);
    following.#detour = this.#way;
    following.#refusedBy(attempt, refused);
    return following;
  }

  #refusedBy({ deployment, adapted }: Attempt, refused: Refused): void {
    const way = this.#way;
    if (adapted) {
      way.adapted ??= new Map();
      way.adapted.set(deployment, adapted);
    }
    if (refused.isUnsent && !way.wasUnsent) {
      way.wasUnsent = true;
      this.#recheck();
      return;
    }
    way.asked = true;
    way.refused = refused;
    way.isBudgeted = false;
    way.mayReturn = false;
    if (!way.attempts) this.#reportIdle(way.offered, deployment);
    way.attempts ??= new Map();
    way.attempts.set(deployment, refused.again ? (way.attempts.get(deployment) ?? 0) + 1 : maxAttempts);
    this.#next();
  }

  /** Tries the next fallback model. If the request or the gateway caused the failure, rejects with it. */
  #moveOn(failure: GatewayError): void {
    const way = this.#way;
    if (!way.fallbackModels || this.#sender.cancellation.cancelled || !isEngineFault(failure)) {
      this.reject(failure);
      return;
    }
    if (!way.failure || way.model === this.#wanted) way.failure = failure;
    const next = way.fallbackModels.shift();
    if (!next || (way.asked && !this.#budget.take())) {
      if (next) this.#sender.tried({ model: next.id, result: "not_retried" });
      this.reject(way.failure);
      return;
    }
    this.#tryOnceAfforded(next);
  }

  #wait(candidates: readonly Deployment[]): void {
    const { capacity, clock } = this.#deps;
    const { cancellation, trace } = this.#sender;
    const way = this.#way;
    way.turn ??= capacity.arrive();
    const { turn } = way;
    this.#sender.waits(() => capacity.positionOf(turn));
    const sinceMs = clock.monotonicMs();
    way.waitingSinceMs ??= sinceMs;
    const goesOn = trace?.waits("queue");
    const over = () => {
      goesOn?.();
      this.#sender.waited(clock.monotonicMs() - sinceMs);
    };
    this.#goOn(
      capacity.wait(candidates, this, turn, cancellation, way.choice?.laterMs),
      (slot) => {
        over();
        if (slot) this.#ask(slot);
        else this.#recheck();
      },
      (error) => {
        over();
        if (error instanceof GatewayError) this.#noSlot(error, sinceMs);
        else this.reject(error);
      },
    );
  }

  #noSlot(error: GatewayError, sinceMs: number): void {
    const { offered, turn } = this.#way;
    const isLate = turn !== undefined && this.#deps.clock.monotonicMs() >= turn.deadlineMs;
    this.#sender.tried({ model: offered.id, result: isLate ? "queue_timeout" : "queue_full", sinceMs });
    this.#moveOn(error);
  }

  /** Returns the deployments that the overflow policy of the model allows now, in order. */
  #overflowing(ranked: readonly Deployment[], model: Model): readonly Deployment[] {
    const { overflow, clock } = this.#deps;
    const policy = model.policies?.overflow;
    if (!overflow || !policy) return ranked;
    const way = this.#way;
    const waitedMs = way.waitingSinceMs === undefined ? 0 : clock.monotonicMs() - way.waitingSinceMs;
    way.choice = overflow.choose(ranked, model, policy, this.#request, this, waitedMs);
    return way.choice.candidates;
  }

  #bill({ deployment }: Slot, model: Model): ReturnType<Overflow["bill"]> {
    const policy = model.policies?.overflow;
    return policy && this.#deps.overflow?.bill(deployment, model, policy, this.#request);
  }

  #overflows({ deployment }: Slot, model: Model): void {
    const reason = this.#detour?.choice?.reason;
    if (!reason) return;
    this.#deps.overflow?.went(model, deployment, reason);
    this.#sender.tried({ deployment, model: model.id, result: "overflowed", said: reason });
  }

  /** Adds each deployment that is unavailable or suspended to the trail (the log of attempts), except `asked`. */
  #reportIdle({ id, deployments }: Model, asked?: Deployment): void {
    const { router } = this.#deps;
    for (const deployment of deployments) {
      if (deployment === asked) continue;
      if (!router.isOpen(deployment.engine)) this.#sender.tried({ deployment, model: id, result: "away" });
      else if (router.resting(deployment)) this.#sender.tried({ deployment, model: id, result: "resting" });
    }
  }

  /**
   * Continues when a promise has settled. If a callback throws, the request is rejected, because nothing else would
   * report the error.
   */
  #goOn<Value>(promise: Promise<Value>, onValue: (value: Value) => void, onError: (error: unknown) => void): void {
    promise.then(onValue, onError).catch((fault: unknown) => this.reject(fault));
  }

  /**
   * Chooses a deployment again, because the model may have changed. The request keeps its queue ticket. If the model
   * has not changed, failed deployments are not asked again.
   */
  #recheck(): void {
    const { offered } = this.#way;
    const now = this.#sender.modelNow(offered.id);
    if (now !== offered) this.#way.begin(now ?? { ...offered, deployments: [] });
    this.#next();
  }

  /** Returns the deployments that may still be tried. Deployments that were deleted meanwhile are left out. */
  #untried(
    ranked: readonly Deployment[],
    attempts: ReadonlyMap<Deployment, number>,
    modelId: string,
  ): readonly Deployment[] {
    const names = new Set(this.#sender.modelNow(modelId)?.deployments.map(({ engine }) => engine.name));
    return ranked.filter((one) => (attempts.get(one) ?? 0) < maxAttempts && names.has(one.engine.name));
  }
}

function tooDear({ id }: Model): GatewayError {
  const message = `The model \`${id}\` takes no requests at the moment, and its fallbacks cost more than a quota has left (GET /v1/limits).`;
  return new GatewayError("service_unavailable", message, { retryAfterSeconds: 30 });
}

/** `Retry-After` in seconds if a node has lost its connection. A node usually reconnects quickly. */
const awayRetrySeconds = 2;

function notDeployed({ id, deployments }: Model): GatewayError {
  if (deployments.some(({ engine }) => engine.accepts === false)) {
    const message = `The machine that serves \`${id}\` is not connected at the moment. Retry in ${awayRetrySeconds} s.`;
    return new GatewayError("service_unavailable", message, { retryAfterSeconds: awayRetrySeconds });
  }
  const message =
    deployments.length === 0
      ? `The model \`${id}\` has no deployment that is configured now.`
      : `The model \`${id}\` takes no new requests at the moment: where it runs is being taken out of service.`;
  return new GatewayError("service_unavailable", message, { retryAfterSeconds: 30 });
}
