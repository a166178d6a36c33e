// Caches the plans (script arguments) of limit sets while they are valid.

import type { LimitSet, Reservation } from "../domain/limits/limits.ts";
import { isCounted } from "../domain/limits/quota-filter.ts";
import { type LimitPlan, planOf } from "./limit-plan.ts";

/** Maximum plans of a limit set. Clients choose their tags, and each combination may need another plan. */
const maxPlans = 64;

export class LimitPlans {
  readonly #prefix: string;
  /** Plans by limit set and by the windows that count the request. */
  readonly #plans = new WeakMap<LimitSet, Map<string, LimitPlan>>();

  /** `prefix` is the prefix of all Redis keys. */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  of(limits: LimitSet, reservation: Pick<Reservation, "model" | "tags">, now: number): LimitPlan {
    const windows = limits.windows?.filter((quota) => isCounted(quota, reservation)) ?? [];
    const name = windows.length === limits.windows?.length ? "all" : windows.map(({ id }) => id).join("\n");
    let plans = this.#plans.get(limits);
    if (!plans) {
      plans = new Map();
      this.#plans.set(limits, plans);
    }
    let plan = plans.get(name);
    if (!plan || now < plan.time.start || now >= plan.time.end) {
      plan = planOf(limits, windows, now, this.#prefix);
      if (plans.size >= maxPlans) plans.clear();
      plans.set(name, plan);
    }
    return plan;
  }
}
