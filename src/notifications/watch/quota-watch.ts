// Checks recently used quotas in the background, and reports the thresholds that they have reached.
import type { Log } from "../../base/log.ts";
import { usdOf } from "../../base/money.ts";
import type { LimitSet, LimitStore, Quota, QuotaUse } from "../../domain/limits/limits.ts";
import type { Period } from "../../domain/limits/quota-rules.ts";
import type { NotificationData, Tidings } from "../../domain/notifications/notification.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Notifier } from "../notifications.ts";
import { PeriodicJob } from "./periodic-job.ts";

export interface QuotaWatchOptions {
  limits: Pick<LimitStore, "usedInWindow">;
  teller: Notifier;
  log: Log;
  /** Interval of the check. Default five seconds. */
  everyMs?: number;
}

/** Thresholds in percent of the limit. */
export const quotaThresholds = [50, 80, 90, 100] as const;
const defaultEveryMs = 5_000;
/** Maximum limit sets of one check. Further sets are checked after their next use. */
const maxTouched = 10_000;
/** Limit sets that are checked in one event-loop tick, which takes a millisecond or less. */
const setsATurn = 128;
/** Maximum reported thresholds to remember, which saves database queries. */
const maxRemembered = 50_000;

/** A limit set as of its last use, and the account that used it. */
interface Touched {
  limits: LimitSet;
  readonly accountId: string;
}

/** One limit of a quota, with the used amount. */
interface Measure {
  /** Identifies the quota, its unit, window and limit. Each threshold is reported once for this subject. */
  subject: string;
  /** Identifies the quota, its unit and limit, without the window. */
  series: string;
  period: Period;
  isAt(percent: number): boolean;
  data: Omit<NotificationData["quota.threshold"], "threshold">;
}

export class QuotaWatch {
  readonly #options: QuotaWatchOptions;
  readonly #rounds: PeriodicJob;
  /**
   * Limit sets used since the last check, by name: sets of rarely used keys are created anew for each use. A set
   * without a name is its own map key.
   */
  #touched = new Map<string | LimitSet, Touched>();
  readonly #notified = new Map<string, { period: Period; threshold: number }>();

  constructor(options: QuotaWatchOptions) {
    this.#options = options;
    const { log, everyMs = defaultEveryMs } = options;
    this.#rounds = new PeriodicJob(() => this.#check(), { everyMs, name: "quotas_not_watched", log });
  }

  /** Marks the limits of a settled request for the next check. Costs only a map entry. */
  used({ limits, account }: Pick<Principal, "limits"> & { account: { id: string } }): void {
    // With very many active keys the map is mostly full, and this check avoids the look-up.
    if (this.#touched.size >= maxTouched) return;
    const name = limits.name ?? limits;
    const touched = this.#touched.get(name);
    if (touched === undefined) this.#touched.set(name, { limits, accountId: account.id });
    else if (touched.limits !== limits) touched.limits = limits;
  }

  check(): Promise<void> {
    return this.#rounds.round();
  }

  close(): Promise<void> {
    return this.#rounds.close();
  }

  async #check(): Promise<void> {
    const touched = this.#touched;
    this.#touched = new Map();
    const seen = new Set<string>();
    let fault: unknown;
    let checked = 0;
    for (const [name, { limits, accountId }] of touched) {
      try {
        for (const quota of [...limits.quotas, ...(limits.windows ?? [])]) {
          if (this.#rounds.isClosed) return;
          const { tokens, nanoUsd, requests = null } = quota;
          if ((tokens === null && nanoUsd === null && requests === null) || seen.has(quota.id)) continue;
          await this.#checkQuota(quota, accountId);
          seen.add(quota.id);
        }
      } catch (error) {
        // A set whose check failed is checked again next time, even without another use.
        fault = error;
        if (!this.#touched.has(name)) this.#touched.set(name, { limits, accountId });
      }
      if (++checked % setsATurn === 0) await new Promise(setImmediate);
    }
    if (fault !== undefined) throw fault;
  }

  async #checkQuota(quota: Quota, accountId: string): Promise<void> {
    const { teller } = this.#options;
    for (const measure of await this.#measuresOf(quota)) {
      const threshold = quotaThresholds.findLast((percent) => measure.isAt(percent));
      // Only the highest threshold is reported.
      if (threshold === undefined || this.#notifiedIn(measure) >= threshold) continue;
      if (!(await teller.notify(tidingsOf(measure, threshold, accountId)))) throw new Error("it could not be kept");
      if (this.#notified.size >= maxRemembered) this.#notified.clear();
      this.#notified.set(measure.series, { period: measure.period, threshold });
    }
  }

  /**
   * Returns the threshold that was reported in this window; 0 if none was. Rolling windows that overlap count as the
   * same window, because their start can shift slightly between Redis and the ledger.
   */
  #notifiedIn({ series, period }: Measure): number {
    const notified = this.#notified.get(series);
    if (notified === undefined) return 0;
    return period.start < notified.period.end && notified.period.start < period.end ? notified.threshold : 0;
  }

  /** Returns an empty list if no window is in use. The store determines the window, not the clock of this process. */
  async #measuresOf(quota: Quota): Promise<Measure[]> {
    const { period, ...used } = await this.#options.limits.usedInWindow(quota);
    return period === undefined || !isNear(quota, used) ? [] : measuresOf(quota, used, period);
  }
}

/** Reports whether any threshold is reached. Most quotas are below all thresholds and need only this check. */
function isNear({ tokens, nanoUsd, requests = null }: Quota, used: QuotaUse): boolean {
  const [least] = quotaThresholds;
  const isReached = (limit: number | null, amount: number) => limit !== null && amount * 100 >= limit * least;
  return isReached(requests, used.requests) || isReached(tokens, used.tokens) || isReached(nanoUsd, used.nanoUsd);
}

function measuresOf(
  { id, owner, called, ownerId, environment, tokens, nanoUsd, requests = null, window, filter }: Quota,
  used: QuotaUse,
  period: Period,
): Measure[] {
  const { start, end } = period;
  const which = {
    ...(window && { per: window.per }),
    ...(filter?.models && { models: [...filter.models] }),
    ...(filter?.tag !== undefined && { tag: filter.tag }),
  };
  const measure = (
    unit: Measure["data"]["unit"],
    limit: number,
    amount: number,
    shown: (amount: number) => number,
  ): Measure => ({
    subject: `quota ${id} ${unit} ${start} ${limit}`,
    series: `${id} ${unit} ${limit}`,
    period,
    // Both sides are whole numbers. A limit of zero has no thresholds.
    isAt: (percent) => limit > 0 && amount * 100 >= limit * percent,
    data: {
      ...{
        owner: called ?? owner,
        owner_id: ownerId,
        environment: environment as Measure["data"]["environment"],
        unit,
      },
      ...{ limit: shown(limit), used: shown(amount) },
      window: { starts_at: start, ends_at: end },
      ...which,
    },
  });
  const itself = (amount: number) => amount;
  return [
    ...(requests === null ? [] : [measure("requests", requests, used.requests, itself)]),
    ...(tokens === null ? [] : [measure("tokens", tokens, used.tokens, itself)]),
    ...(nanoUsd === null ? [] : [measure("USD", nanoUsd, used.nanoUsd, usdOf)]),
  ];
}

/** The quota of an organization is for its operators: several accounts share it, and none of them can raise it. */
function tidingsOf({ subject, data }: Measure, threshold: number, accountId: string): Tidings {
  const { environment, owner } = data;
  return {
    type: "quota.threshold",
    accountId: owner === "organization" ? null : accountId,
    environment,
    once: `${subject} ${threshold}`,
    data: { ...data, threshold },
  };
}
