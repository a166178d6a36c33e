// The health of upstreams and deployments over all processes, judged by the results of real requests. Reports each
// change.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Engine } from "../../domain/models/engine.ts";
import {
  type AttemptHealth,
  type AttemptReport,
  isOutdated,
  mergedHealth,
  type UpstreamHealth,
} from "../../domain/usage/attempt-health.ts";
import type { Router } from "../routing/route.ts";

export interface UpstreamHealthsOptions {
  router: Pick<Router, "attemptsAt" | "onFault">;
  sources: { known(): readonly { name: string; engine: Engine }[] };
  /** Returns the reports of the other replicas. */
  others(): readonly AttemptReport[];
  clock: Clock;
  log: Log;
}

const everyMs = 1_000;
/**
 * Maximum reports that are sent to other replicas. `maxNamed` is the maximum number of failing models that are named.
 */
const maxReports = 200;
const maxNamed = 20;

export class UpstreamHealths {
  /**
   * Called when this process sees an upstream or one of its models begin or cease to fail, or fail for another cause.
   */
  onChange: (() => void) | undefined;
  readonly #options: UpstreamHealthsOptions;
  /** The upstreams that failed at the last check by this process. `kind` is the cause and the failing models. */
  readonly #failing = new Map<string, { kind: string; sinceMs: number }>();
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: UpstreamHealthsOptions) {
    this.#options = options;
    options.router.onFault = () => {
      if (this.#timer) return;
      this.#timer = setInterval(() => this.check(), everyMs);
      this.#timer.unref();
    };
  }

  close(): void {
    this.#options.router.onFault = undefined;
    clearInterval(this.#timer);
  }

  /** Returns the health of an upstream over all replicas. */
  of(engine: Engine): UpstreamHealth {
    const own = this.#healthOf(this.#options.router.attemptsAt(engine).all);
    const others = this.#othersOf(engine.name);
    const all = mergedHealth([own, ...others.filter(({ model }) => model === null)]) ?? own;
    const seen = others.flatMap(({ model, isFailing }) => (isFailing ? (model ?? []) : []));
    const models = [...new Set([...this.#own(engine).models, ...seen])]
      .filter((model) => this.ofModel(engine, model).isFailing)
      .slice(0, maxNamed);
    return { ...all, isFailing: all.isFailing || models.length > 0, models };
  }

  /** Returns the health of one model at an upstream over all replicas. */
  ofModel(engine: Engine, model: string): AttemptHealth {
    const record = this.#options.router.attemptsAt(engine).models.get(model)?.attempts;
    const own = record ? this.#healthOf(record) : nothing;
    return mergedHealth([own, ...this.#othersOf(engine.name).filter((one) => one.model === model)]) ?? own;
  }

  /** Returns the failing upstreams of all replicas, each with its failing models. */
  failing(): { upstream: string; models: { model: string | null; health: AttemptHealth }[] }[] {
    return this.#options.sources.known().flatMap(({ name, engine }) => {
      const health = this.of(engine);
      if (!health.isFailing) return [];
      const models = health.models.map((model) => ({ model, health: this.ofModel(engine, model) }));
      return [{ upstream: name, models: models.length > 0 ? models : [{ model: null, health }] }];
    });
  }

  /**
   * Returns the health of all upstreams, for notifications. `isOwn` is true if this process sees the upstream fail, and
   * no other replica has had a success since. `isProven` is true if the last attempt that this process knows of
   * succeeded.
   */
  seen(): { upstream: string; health: UpstreamHealth; isOwn: boolean; isProven: boolean }[] {
    return this.#options.sources.known().map(({ name, engine }) => {
      const health = this.of(engine);
      const { all } = this.#options.router.attemptsAt(engine);
      return {
        ...{ upstream: name, health },
        isOwn: health.isFailing && this.#own(engine).isFailing,
        isProven: all.isProven || isOutdated(this.#healthOf(all), this.#othersOf(name)),
      };
    });
  }

  /**
   * Returns the reports that other replicas need: for upstreams and models that had failed attempts here, or for which
   * another replica reports failed attempts. Failing ones come first, so that the maximum never leaves them out.
   */
  reports(): AttemptReport[] {
    const { sources, router, others } = this.#options;
    const asked = new Set(others().map(({ upstream }) => upstream));
    const reports = sources.known().flatMap(({ name: upstream, engine }): AttemptReport[] => {
      const { all, models } = router.attemptsAt(engine);
      const whole = this.#healthOf(all);
      if (whole.last === null && !asked.has(upstream)) return [];
      const each = [...models].map(([model, { attempts }]) => ({ upstream, model, ...this.#healthOf(attempts) }));
      return [{ upstream, model: null, ...whole }, ...each].filter(isKnown);
    });
    return reports.toSorted((one, other) => Number(other.isFailing) - Number(one.isFailing)).slice(0, maxReports);
  }

  /** Logs the upstreams that began or ceased to fail since the last check. */
  check(): void {
    const { sources, router, clock, log } = this.#options;
    const nowMs = clock.monotonicMs();
    let isDoubted = false;
    let isChanged = false;
    const known = new Set<string>();
    for (const { name: upstream, engine } of sources.known()) {
      known.add(upstream);
      const { all, models } = router.attemptsAt(engine);
      isDoubted ||= all.isDoubted(nowMs) || [...models.values()].some(({ attempts }) => attempts.isDoubted(nowMs));
      const own = this.#own(engine);
      const before = this.#failing.get(upstream);
      if (own.isFailing) {
        const fields = this.#fields(engine, own);
        const kind = `${fields.cause} ${fields.models}`;
        if (before?.kind === kind) continue;
        this.#failing.set(upstream, { kind, sinceMs: before?.sinceMs ?? nowMs });
        log.warn("upstream_failing", { upstream, ...fields });
      } else if (before) {
        this.#failing.delete(upstream);
        const seconds = Math.round((nowMs - before.sinceMs) / 1000);
        if (all.isProven) log.info("upstream_recovered", { upstream, failing_seconds: seconds });
        else log.info("upstream_unasked", { upstream, detail: "it failed, and gets no more requests" });
      } else continue;
      isChanged = true;
    }
    for (const upstream of this.#failing.keys()) if (!known.has(upstream)) this.#failing.delete(upstream);
    if (!isDoubted && this.#failing.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
    if (isChanged) this.onChange?.();
  }

  /** Returns the fields of a log line. The server's error message is left out, because it must not be logged. */
  #fields(engine: Engine, { models, ...whole }: UpstreamHealth) {
    const [first] = models;
    const { attempts, failed, last } = first === undefined ? whole : this.ofModel(engine, first);
    const { cause, status } = last ?? { cause: null, status: null };
    return { models: models.join(", "), cause, status, failed, attempts };
  }

  /** Returns the health of an upstream as this process sees it. */
  #own(engine: Engine): UpstreamHealth {
    const { router, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    const { all, models } = router.attemptsAt(engine);
    const failing = [...models].filter(([, { attempts }]) => attempts.isFailing(nowMs)).map(([model]) => model);
    const health = this.#healthOf(all);
    return { ...health, isFailing: health.isFailing || failing.length > 0, models: failing.slice(0, maxNamed) };
  }

  #healthOf(record: { health(nowMs: number, nowSeconds: number): AttemptHealth }): AttemptHealth {
    const { clock } = this.#options;
    return record.health(clock.monotonicMs(), clock.nowSeconds());
  }

  #othersOf(upstream: string): AttemptReport[] {
    return this.#options.others().filter((report) => report.upstream === upstream);
  }
}

/**
 * Reports whether another replica needs this state. A success is reported for as long as an earlier failure would be.
 */
function isKnown({ attempts, last, workedAt }: AttemptHealth): boolean {
  return attempts > 0 || last !== null || workedAt !== null;
}

const nothing: AttemptHealth = { attempts: 0, failed: 0, isFailing: false, since: null, last: null };
