// Looks at the quotas that were used lately, apart from any request, and tells which thresholds they have reached.
import type { Log } from "../../base/log.ts";
import { usdOf } from "../../base/money.ts";
import type { LimitSet, LimitStore, Quota, QuotaUse } from "../../domain/limits/limits.ts";
import type { Period } from "../../domain/limits/quota-rules.ts";
import type { NotificationData, Tidings } from "../../domain/notifications/notification.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Teller } from "../notifications.ts";
import { PeriodicJob } from "./periodic-job.ts";

export interface QuotaWatchOptions {
  limits: Pick<LimitStore, "usedInWindow">;
  teller: Teller;
  log: Log;
  /** Default five seconds. */
  everyMs?: number;
}

/** Percent of the limit. */
export const quotaThresholds = [50, 80, 90, 100] as const;
const defaultEveryMs = 5_000;
/** Sets of limits that one round looks at: more are looked at when they are used again. */
const maxTouched = 10_000;
/** Sets that are looked at in one turn of the event loop: a millisecond or less. Each turn has its price for all requests. */
const setsATurn = 128;
/** What was told, so that the database is not asked again. */
const maxRemembered = 50_000;

/** What was used, the last time as it was then, and in whose name. */
interface Touched {
  limits: LimitSet;
  readonly accountId: string;
}

/** One amount of a quota, with what was used of it. */
interface Measure {
  /** Names subject, window and limit: another of them is told anew. */
  place: string;
  /** The same without the window. */
  series: string;
  period: Period;
  isAt(percent: number): boolean;
  data: Omit<NotificationData["quota.threshold"], "threshold">;
}

export class QuotaWatch {
  readonly #options: QuotaWatchOptions;
  readonly #rounds: PeriodicJob;
  /** By the name of a set, as that of a key that is seldom used is made anew for each use; else by the set itself. */
  #touched = new Map<string | LimitSet, Touched>();
  readonly #told = new Map<string, { period: Period; threshold: number }>();

  constructor(options: QuotaWatchOptions) {
    this.#options = options;
    const { log, everyMs = defaultEveryMs } = options;
    this.#rounds = new PeriodicJob(() => this.#look(), { everyMs, name: "quotas_not_watched", log });
  }

  /** A request has settled: all that this costs it is a place in a map. */
  used({ limits, account }: Pick<Principal, "limits"> & { account: { id: string } }): void {
    // With very many keys in use it is full for most of the time: then none of them is looked up.
    if (this.#touched.size >= maxTouched) return;
    const name = limits.name ?? limits;
    const touched = this.#touched.get(name);
    if (touched === undefined) this.#touched.set(name, { limits, accountId: account.id });
    else if (touched.limits !== limits) touched.limits = limits;
  }

  look(): Promise<void> {
    return this.#rounds.round();
  }

  close(): Promise<void> {
    return this.#rounds.close();
  }

  async #look(): Promise<void> {
    const touched = this.#touched;
    this.#touched = new Map();
    const seen = new Set<string>();
    let fault: unknown;
    let looked = 0;
    for (const [name, { limits, accountId }] of touched) {
      try {
        for (const quota of [...limits.quotas, ...(limits.windows ?? [])]) {
          if (this.#rounds.isClosed) return;
          const { tokens, nanoUsd, requests = null } = quota;
          if ((tokens === null && nanoUsd === null && requests === null) || seen.has(quota.id)) continue;
          await this.#lookAt(quota, accountId);
          seen.add(quota.id);
        }
      } catch (error) {
        // Whatever could not be asked or kept now is looked at in the next round, used again or not.
        fault = error;
        if (!this.#touched.has(name)) this.#touched.set(name, { limits, accountId });
      }
      if (++looked % setsATurn === 0) await new Promise(setImmediate);
    }
    if (fault !== undefined) throw fault;
  }

  async #lookAt(quota: Quota, accountId: string): Promise<void> {
    const { teller } = this.#options;
    for (const measure of await this.#measuresOf(quota)) {
      const threshold = quotaThresholds.findLast((percent) => measure.isAt(percent));
      // Only the highest: who is at 95 % need not hear of 50.
      if (threshold === undefined || this.#toldIn(measure) >= threshold) continue;
      if (!(await teller.tell(tidingsOf(measure, threshold, accountId)))) throw new Error("it could not be kept");
      if (this.#told.size >= maxRemembered) this.#told.clear();
      this.#told.set(measure.series, { period: measure.period, threshold });
    }
  }

  /**
   * The threshold that was told in this window. One that rolls is the same where it begins a little otherwise: that is read
   * from the ledger where Redis cannot say it, and anew where the clock of that was set back.
   */
  #toldIn({ series, period }: Measure): number {
    const told = this.#told.get(series);
    if (told === undefined) return 0;
    return period.start < told.period.end && told.period.start < period.end ? told.threshold : 0;
  }

  /** Nothing where no window is in use. The window is that of the figures, whatever the clock of this process says. */
  async #measuresOf(quota: Quota): Promise<Measure[]> {
    const { period, ...used } = await this.#options.limits.usedInWindow(quota);
    return period === undefined || !isNear(quota, used) ? [] : measuresOf(quota, used, period);
  }
}

/** Whether it has reached any threshold: most have not, and cost no more than this. */
function isNear({ tokens, nanoUsd, requests = null }: Quota, used: QuotaUse): boolean {
  const [least] = quotaThresholds;
  const reaches = (limit: number | null, amount: number) => limit !== null && amount * 100 >= limit * least;
  return reaches(requests, used.requests) || reaches(tokens, used.tokens) || reaches(nanoUsd, used.nanoUsd);
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
    place: `quota ${id} ${unit} ${start} ${limit}`,
    series: `${id} ${unit} ${limit}`,
    period,
    // Whole numbers on both sides; of a limit of nothing there is no part.
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

function tidingsOf({ place, data }: Measure, threshold: number, accountId: string): Tidings {
  const { environment } = data;
  return {
    type: "quota.threshold",
    accountId,
    environment,
    once: `${place} ${threshold}`,
    data: { ...data, threshold },
  };
}
