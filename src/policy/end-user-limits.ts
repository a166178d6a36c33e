// Adds the budgets of the end users whom a request names to its limits.
import { budgetOf } from "../domain/end-users.ts";
import type { LimitSet } from "../domain/limits/limits.ts";
import type { Principal } from "../domain/principal.ts";
import { quotasOfEndUsers } from "./limits-of.ts";
import { LruMap } from "./lru-map.ts";

/** Maximum remembered limits, so that active end users need no new plan for each request. */
const maxKnown = 2_000;

export type Limited = Pick<Principal, "account" | "environment" | "limits">;

export class EndUserLimits {
  readonly #known = new LruMap<{ base: LimitSet; limits: LimitSet }>(maxKnown);

  /** Returns the principal's own limits if no end user with a budget is among the tags. */
  of(principal: Limited, tags: readonly string[] | undefined): LimitSet {
    const { account, limits: base } = principal;
    if (account.endUsers === undefined || tags === undefined) return base;
    const budgets = account.endUsers;
    const limited = tags.filter((tag) => budgetOf(budgets, tag) !== undefined);
    if (limited.length === 0) return base;
    const name = `${base.name} ${limited.join(" ")}`;
    const known = base.name === undefined ? undefined : this.#known.get(name);
    // After a change of the account or key, `base` is another object.
    if (known?.base === base) return known.limits;
    const limits = withEndUsers(principal, limited);
    if (base.name !== undefined) this.#known.set(name, { base, limits });
    return limits;
  }
}

/** Returns the limits with the quotas of the end users with these tags. */
export function withEndUsers({ account, environment, limits }: Limited, tags: readonly string[]): LimitSet {
  const { name, requests, tokens, quotas, groups, windows = [] } = limits;
  const ofUsers = quotasOfEndUsers(account, environment, tags);
  return { name, requests, tokens, quotas, ...(groups && { groups }), windows: [...windows, ...ofUsers] };
}
