// Records which model servers report too few tokens or ignore limits of an answer, and occasionally logs a warning
// about each.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";

const againMs = 600_000;
/** Maximum remembered warnings: upstreams and nodes come and go. The oldest warning is forgotten first. */
const maxKnown = 1_000;
const none: ReadonlySet<string> = new Set();

interface LimitNames {
  readonly limitMembers: readonly (string | undefined)[];
}

export class UsageDoubts {
  readonly #clock: Clock;
  readonly #log: Log;
  /**
   * Time of the last warning in monotonic milliseconds, by warning and upstream and, for an ignored limit, the model.
   */
  readonly #warned = new Map<string, number>();
  /** Names of limits that a deployment ignored, by upstream and model. */
  readonly #ignored = new Map<string, Set<string>>();

  constructor({ clock, log }: { clock: Clock; log: Log }) {
    this.#clock = clock;
    this.#log = log;
  }

  usageUnderReported(upstream: string, model: string): void {
    const detail = "fewer tokens were reported than were delivered; an estimate is recorded in their place";
    this.#warn("usage_understated", upstream, { upstream, model, detail });
  }

  /** Records that an answer of `deployment` exceeds the limit that the request set in the member `name`. */
  limitIgnored({ engine, model }: Deployment, name: string): void {
    const key = keyOf(engine.name, model);
    const names = this.#ignored.get(key) ?? new Set();
    names.add(name);
    forgetOldest(this.#ignored, key);
    this.#ignored.set(key, names);
    const detail = `an answer is longer than \`${name}\` allows; what was delivered is recorded, and other names of the limit are sent from now on`;
    this.#warn("limit_ignored", key, { upstream: engine.name, model, detail });
  }

  /** Returns the names of the limits that the deployment has ignored. */
  ignoredLimits({ engine, model }: Deployment): ReadonlySet<string> {
    return this.#ignored.size === 0 ? none : (this.#ignored.get(keyOf(engine.name, model)) ?? none);
  }

  /**
   * Reports whether a deployment of the model ignores the limit, whichever of the request members in `limitMembers`
   * sets it.
   */
  ignoresLimits({ deployments }: Pick<Model, "deployments">, { limitMembers }: LimitNames): boolean {
    if (this.#ignored.size === 0) return false;
    return deployments.some((one) => {
      const ignored = this.ignoredLimits(one);
      return limitMembers.every((name) => name === undefined || ignored.has(name));
    });
  }

  #warn(event: string, of: string, members: Record<string, string>): void {
    const now = this.#clock.monotonicMs();
    const key = `${event} ${of}`;
    const before = this.#warned.get(key);
    if (before !== undefined && now - before < againMs) return;
    forgetOldest(this.#warned, key);
    this.#warned.set(key, now);
    this.#log.warn(event, members);
  }
}

function keyOf(upstream: string, model: string): string {
  return JSON.stringify([upstream, model]);
}

/** Makes room for `key` as the newest entry: removes its earlier entry and, if the map is full, the oldest one. */
function forgetOldest<Value>(map: Map<string, Value>, key: string): void {
  map.delete(key);
  const [oldest] = map.keys();
  if (oldest !== undefined && map.size >= maxKnown) map.delete(oldest);
}
