// Requests of members for more of a quota, and the raises that were granted for a time.
import type { Environment } from "../api-key.ts";
import type { AuditEvent } from "../audit.ts";
import { maxAmount, type QuotaRule, quotaKey } from "./quota-rules.ts";

/** The quota that a request names: a rule of the member or the account without its amount. */
export type RequestedQuota = Pick<QuotaRule, "unit" | "per" | "window" | "models" | "tag">;

/** An amount that is added to a quota until a point in time. Each replica ends the raise by its own clock. */
export interface LimitRaise {
  readonly requestId: string;
  /** The limit id of a membership, or the id of an account. */
  readonly ownerId: string;
  readonly environment: Environment;
  readonly quota: RequestedQuota;
  readonly amount: number;
  /** Unix seconds. */
  readonly until: number;
}

/** Maximum running raises of an account: all of them are kept in memory with each of its keys. */
export const maxRaises = 200;
/** Maximum length of the running raises of an account as JSON. */
export const maxRaisesLength = 128 * 1024;
/** Maximum open requests of an account. */
export const maxOpenRequests = 200;
export const maxReasonLength = 500;

export interface LimitRequest {
  /** `lrq_` and a UUIDv7. */
  id: string;
  accountId: string;
  environment: Environment;
  /** The owner of the quota. */
  owner: "member" | "account";
  ownerId: string;
  /** The membership and the person who asks. */
  membershipId: string;
  personId: string;
  quota: RequestedQuota;
  /** The amount that is wanted in addition; null leaves it to the person who decides. */
  amount: number | null;
  reason: string;
  status: "open" | "granted" | "refused";
  /** Unix seconds. */
  createdAt: number;
  /** Null while the request is open. */
  decision: LimitDecision | null;
}

/** A request as lists show it, with the person who asks. */
export interface ListedLimitRequest extends LimitRequest {
  email: string;
  personName: string;
}

export interface LimitDecision {
  /** Id of the person or key that decided. */
  by: string;
  /** Unix seconds. */
  at: number;
  /** The amount that is added until `until`. Null for a refused request. */
  amount: number | null;
  until: number | null;
}

export interface LimitRequestFilter {
  accountId?: string | undefined;
  personId?: string | undefined;
  owner?: LimitRequest["owner"] | undefined;
  status?: LimitRequest["status"] | undefined;
}

export interface LimitRequestStore {
  /** Stores a request, unless the person has an open one for the same quota or the account has too many. */
  open(request: LimitRequest, event: AuditEvent): Promise<"done" | "open_already" | "too_many">;
  find(id: string): Promise<ListedLimitRequest | undefined>;
  /** Lists requests, newest first, beginning after the id `after`. */
  list(filter: LimitRequestFilter, page: { after: string | undefined; limit: number }): Promise<ListedLimitRequest[]>;
  /**
   * Decides an open request. A grant adds the raise to its account in the same transaction. A refusal ends a running
   * raise at once. `stale` means that another decision came first.
   */
  decide(id: string, decision: LimitDecision, event: AuditEvent): Promise<"done" | "stale" | "too_many">;
}

/** Returns the rules of an owner with the amounts that were granted in addition. */
export function raisedRules<Rule extends Omit<QuotaRule, "hardStop">>(
  rules: readonly Rule[],
  raises: readonly LimitRaise[],
): readonly Rule[] {
  if (raises.length === 0) return rules;
  return rules.map((rule) => {
    const key = quotaKey(rule);
    const more = raises.reduce((sum, { quota, amount }) => (quotaKey(quota) === key ? sum + amount : sum), 0);
    return more === 0 ? rule : { ...rule, amount: Math.min(maxAmount[rule.unit], rule.amount + more) };
  });
}

/** Returns the raises of one owner. */
export function raisesOf(
  raises: readonly LimitRaise[] | undefined,
  ownerId: string,
  environment: Environment,
): readonly LimitRaise[] {
  return raises?.filter((raise) => raise.ownerId === ownerId && raise.environment === environment) ?? [];
}

/** Reports whether an account may have no more raises. */
export function hasMaxRaises(running: readonly LimitRaise[]): boolean {
  return running.length >= maxRaises || JSON.stringify(running).length > maxRaisesLength;
}

/** Returns the raises that have not ended, or undefined if there are none. */
export function runningRaises(
  raises: readonly LimitRaise[] | undefined,
  nowSeconds: number,
): readonly LimitRaise[] | undefined {
  const running = raises?.filter(({ until }) => until > nowSeconds) ?? [];
  return running.length === 0 ? undefined : running;
}
