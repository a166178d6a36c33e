// Requests of members for a higher quota. Owners and admins grant a raise for a limited time, or refuse. Only operators
// decide about quotas of the account.
import { forbidden, GatewayError, invalidRequest } from "../base/errors.ts";
import { shown } from "../base/text/shown.ts";
import {
  type LimitDecision,
  type LimitRequest,
  type LimitRequestStore,
  type ListedLimitRequest,
  maxOpenRequests,
  maxRaises,
  type RequestedQuota,
} from "../domain/limits/limit-requests.ts";
import type { Quota } from "../domain/limits/limits.ts";
import {
  type GivenQuotaRule,
  type QuotaRule,
  quotaFault,
  quotaKey,
  quotaRuleOf,
} from "../domain/limits/quota-rules.ts";
import type { Tidings } from "../domain/notifications/notification.ts";
import { membershipCredentialId, type PersonStore } from "../domain/people/person.ts";
import { actorOf, type Principal, type SignedInPerson } from "../domain/principal.ts";
import { oneLine } from "../policy/manage/key-values.ts";
import { auditEvent, type Origin } from "../policy/records/audit.ts";
import { requireMayRaise } from "./members.ts";

export interface LimitRequestsOptions {
  store: LimitRequestStore;
  people: Pick<PersonStore, "findMembership" | "membershipsOf">;
  /** Never rejects. The request is in the list even if nobody could be notified. */
  notify(tidings: Tidings): Promise<unknown>;
  /** Called with the accounts' ids after a raise began or was ended early, so that the new limits take effect. */
  changed(ids: readonly string[]): void;
}

export interface Wanted {
  owner: LimitRequest["owner"];
  quota: Omit<GivenQuotaRule, "amount">;
  amount: number | null;
  reason: string;
}

export class LimitRequests {
  readonly #options: LimitRequestsOptions;

  constructor(options: LimitRequestsOptions) {
    this.#options = options;
  }

  get store(): LimitRequestStore {
    return this.#options.store;
  }

  /** Opens a request. Throws `invalid_request` if the quota does not exist, also if the person asked before. */
  async ask(
    principal: Principal & { person: SignedInPerson },
    wanted: Wanted,
    origin: Origin,
  ): Promise<ListedLimitRequest> {
    const { store, people, notify } = this.#options;
    const { person, account, environment } = principal;
    const { owner, amount } = wanted;
    const { amount: _, ...quota } = validQuota({ ...wanted.quota, amount: amount ?? 1 });
    const reason = oneLine("reason", wanted.reason);
    if (owner === "account" && person.role === "member") {
      throw forbidden("owner: only owners and admins ask for more of the account's quotas.");
    }
    const membership = (await people.membershipsOf(person.id)).find(({ accountId }) => accountId === account.id);
    if (!membership) throw forbidden("Only members of the account ask for more.");
    const ownerId = owner === "account" ? account.id : membershipCredentialId(membership.id, environment);
    if (!hasQuota(principal, ownerId, quota)) {
      throw invalidRequest(`per: there is no such quota of the ${owner}. GET /v1/limits lists those that apply.`);
    }
    const request: LimitRequest = {
      ...{ id: `lrq_${Bun.randomUUIDv7()}`, accountId: account.id, environment, owner, ownerId },
      ...{ membershipId: membership.id, personId: person.id, quota, amount, reason },
      ...{ status: "open", createdAt: origin.nowSeconds, decision: null },
    };
    const outcome = await store.open(request, auditEvent("limit.requested", principal, origin, about(request)));
    if (outcome === "open_already") {
      throw invalidRequest("You have an open request for this quota already. Wait until it is decided.");
    }
    if (outcome === "too_many") {
      throw invalidRequest(`The account has ${maxOpenRequests} open requests. Ask when some are decided.`);
    }
    const stored = await this.find(request.id);
    void notify({
      ...{ type: "limit.requested", accountId: owner === "account" ? null : account.id, environment },
      once: `limit.requested:${request.id}`,
      data: { ...dataOf(request), account_id: account.id, email: stored.email, amount, reason },
    });
    return stored;
  }

  /** Grants or refuses an open request, or ends a raise early. */
  async decide(
    principal: Principal,
    request: ListedLimitRequest,
    granted: { amount: number; seconds: number } | undefined,
    origin: Origin,
  ): Promise<ListedLimitRequest> {
    const { store, people, notify, changed } = this.#options;
    const { id, accountId, environment, owner, quota, membershipId } = request;
    const membership = await people.findMembership(membershipId);
    requireMayRaise(principal, { accountId, owner, role: membership?.role ?? "owner" });
    if (granted) validQuota({ ...quota, amount: granted.amount });
    if (granted && !membership) throw invalidRequest("The person who asked is no longer a member of the account.");
    const decision: LimitDecision = {
      ...{ by: actorOf(principal).id, at: origin.nowSeconds, amount: granted?.amount ?? null },
      until: granted ? origin.nowSeconds + granted.seconds : null,
    };
    const { amount, until } = decision;
    const detail = granted ? { amount, until } : {};
    const event = auditEvent(granted ? "limit.granted" : "limit.refused", principal, origin, about(request, detail));
    const outcome = await store.decide(id, decision, event);
    if (outcome === "stale") throw invalidRequest("The request was decided before.");
    if (outcome === "too_many")
      throw invalidRequest(
        `The account has ${maxRaises} raised limits, or they name too many models. End one of them first.`,
      );
    changed([accountId]);
    void notify({
      ...{
        type: "limit.decided",
        accountId,
        environment,
        once: `limit.decided:${id}:${granted ? "granted" : "refused"}`,
      },
      data: { ...dataOf(request), amount, until },
    });
    return { ...request, status: granted ? "granted" : "refused", decision };
  }

  /** Returns the request. Throws `not_found` if it does not exist, or not in this account. */
  async find(id: string, accountId?: string): Promise<ListedLimitRequest> {
    const found = await this.#options.store.find(id);
    if (found && (accountId === undefined || found.accountId === accountId)) return found;
    throw new GatewayError("not_found", `There is no limit request ${shown(id)}.`);
  }
}

/** Returns the quota with the additional amount. Throws `invalid_request` for an impossible window or amount. */
function validQuota(given: GivenQuotaRule): QuotaRule {
  const fault = quotaFault([given]);
  if (fault) throw invalidRequest(`${fault.field}: ${fault.must}.`);
  return quotaRuleOf(given);
}

/** Reports whether the owner has such a quota. */
function hasQuota({ limits }: Principal, ownerId: string, wanted: RequestedQuota): boolean {
  const key = quotaKey(wanted);
  return [...limits.quotas, ...(limits.windows ?? [])].some((quota) => {
    const { window, filter } = quota;
    const which = { per: window?.per ?? "month", window: window?.kind ?? "calendar", ...filter } as const;
    return quota.ownerId === ownerId && unitsOf(quota).some((unit) => quotaKey({ unit, ...which }) === key);
  });
}

function unitsOf({ requests, tokens, nanoUsd }: Quota): RequestedQuota["unit"][] {
  return [
    ...(typeof requests === "number" ? (["requests"] as const) : []),
    ...(tokens === null ? [] : (["tokens"] as const)),
    ...(nanoUsd === null ? [] : (["usd"] as const)),
  ];
}

function about(request: LimitRequest, detail: Record<string, unknown> = {}) {
  const { id, accountId, personId, owner, quota, amount } = request;
  const asked = { person_id: personId, owner, ...quota, ...(amount === null ? {} : { asked: amount }) };
  return { accountId, targetId: id, detail: { ...asked, ...detail } };
}

function dataOf({ id, personId, owner, environment, quota: { unit, per, models, tag } }: LimitRequest) {
  return {
    ...{ request_id: id, person_id: personId, owner, environment, unit, per },
    ...(models && { models: [...models] }),
    ...(tag !== undefined && { tag }),
  };
}
