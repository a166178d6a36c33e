// Sends one request to the first deployment that takes it, of the model that was asked for or of one that stands in.
import type { Clock } from "../domain/clock.ts";
import { GatewayError } from "../domain/errors.ts";
import type { Deployment, Model } from "../domain/model.ts";
import { Attempt, type Dispatched, type Refused, type Sender } from "./attempt.ts";
import type { Capacity, Turn } from "./capacity.ts";
import type { DecodedRequest } from "./decoded-request.ts";
import { isEngineFault } from "./engine-refusal.ts";
import type { PlaceRequest, Seat } from "./gate.ts";
import type { RetryBudget } from "./retry-budget.ts";
import type { Router } from "./route.ts";

export interface DispatchDeps {
  router: Router;
  capacity: Capacity;
  clock: Clock;
}

/**
 * Times that one deployment is asked: an engine that only has too many requests at the moment is asked again. As often
 * as a limit that nobody knew yet is halved until it is right.
 */
const maxAttempts = 6;

/**
 * Tries the candidates in order, each once it has capacity. Nothing was delivered yet, so a failed one may be followed
 * by the next, within the model's budget for that; the failure is the answer where none is left. A refusal of the
 * request itself (400 and the like) is final at once. Where all of a model's deployments fail, have no room or are at
 * rest, the models that stand in for it are tried in the same way.
 */
export async function dispatch(
  request: DecodedRequest,
  model: Model,
  deps: DispatchDeps,
  sender: Sender,
): Promise<Dispatched> {
  const dispatching = new Dispatching(request, model, deps, sender);
  if (!model.fallbacks) return await dispatching.by(model);
  return await dispatching.byAnyOf([model, ...sender.standIns()]);
}

class Dispatching {
  readonly #request: DecodedRequest;
  readonly #deps: DispatchDeps;
  readonly #sender: Sender;
  readonly #wanted: PlaceRequest;
  readonly #budget: RetryBudget | undefined;
  #turn: Turn | undefined;
  /** Whether a deployment was asked and failed: then the next one is one more. */
  #asked = false;

  constructor(request: DecodedRequest, model: Model, deps: DispatchDeps, sender: Sender) {
    const { operation, stream, width } = request;
    this.#request = request;
    this.#deps = deps;
    this.#sender = sender;
    this.#wanted = { accountId: sender.accountId, operation, stream, width, model: model.id };
    if (model.deployments.length < 2 && !model.fallbacks) return;
    this.#budget = deps.router.retryBudget(model.id);
    this.#budget.requested();
  }

  /** What is known to be broken comes last: then nobody has to wait for it to fail once more. */
  async byAnyOf(models: readonly Model[]): Promise<Dispatched> {
    const { router } = this.#deps;
    const working = models.filter((model) => router.works(model));
    const others = models.filter((model) => !working.includes(model));
    let failure: GatewayError | undefined;
    for (const model of [...working, ...others]) {
      if (this.#asked && !this.#budget?.take()) break;
      try {
        return await this.by(model);
      } catch (error) {
        if (this.#sender.cancellation.cancelled || !mayMoveOn(error)) throw error;
        // Of what was asked for, where that failed.
        if (!failure || model === models[0]) failure = error;
      }
    }
    throw failure;
  }

  async by(model: Model): Promise<Dispatched> {
    const { router, capacity } = this.#deps;
    const { cancellation, workload } = this.#sender;
    let offered = model;
    let attempts: Map<Deployment, number> | undefined;
    let refused: Refused | undefined;
    for (;;) {
      // Before an engine is asked, or counted as asked: who has left by then pays nothing.
      cancellation.throwIfCancelled();
      const ranked = router.order(offered, workload);
      const candidates = attempts ? this.#untried(ranked, attempts, offered.id) : ranked;
      if (candidates.length === 0) throw refused?.failure ?? notDeployed(offered);
      // One that only went back into the queue is no burden to anybody: it waits until there is room.
      if (refused && !refused.again && !this.#budget?.take()) throw refused.failure;
      const seat = capacity.take(candidates, this.#wanted) ?? (await this.#wait(candidates));
      if (!seat) {
        // What there is changed while it waited: it keeps its turn, and goes where the model runs now, never where it ran.
        offered = this.#sender.modelNow(offered.id) ?? { ...offered, deployments: [] };
        attempts = undefined;
        refused = undefined;
        continue;
      }
      const attempt = new Attempt(seat, offered, router, this.#sender);
      try {
        const response = await attempt.send(this.#request);
        if (response.status >= 200 && response.status < 300) return attempt.taken(response);
        refused = await attempt.refused(response, this.#request);
      } catch (error) {
        refused = attempt.failed(error);
      }
      this.#asked = true;
      attempts ??= new Map();
      attempts.set(seat.deployment, refused.again ? (attempts.get(seat.deployment) ?? 0) + 1 : maxAttempts);
    }
  }

  async #wait(candidates: readonly Deployment[]): Promise<Seat | undefined> {
    const { capacity, clock } = this.#deps;
    this.#turn ??= capacity.arrive();
    const sinceMs = clock.monotonicMs();
    const goesOn = this.#sender.trace?.waits("queue");
    try {
      return await capacity.wait(candidates, this.#wanted, this.#turn, this.#sender.cancellation);
    } finally {
      goesOn?.();
      this.#sender.waited(clock.monotonicMs() - sinceMs);
    }
  }

  /** A failure can take minutes: what was deleted meanwhile is asked no more. */
  #untried(
    ranked: readonly Deployment[],
    attempts: ReadonlyMap<Deployment, number>,
    modelId: string,
  ): readonly Deployment[] {
    const names = new Set(this.#sender.modelNow(modelId)?.deployments.map(({ engine }) => engine.name));
    return ranked.filter((one) => (attempts.get(one) ?? 0) < maxAttempts && names.has(one.engine.name));
  }
}

/** Whether a model that stands in may do better: the fault is neither of the request nor of ours. */
function mayMoveOn(error: unknown): error is GatewayError {
  return error instanceof GatewayError && isEngineFault(error);
}

/** Where a machine lost its connection it is mostly back sooner. */
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
