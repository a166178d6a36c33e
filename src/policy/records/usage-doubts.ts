// Remembers which model servers report too few tokens, or ignore limits of an answer, and warns of each once in a while.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";

const againMs = 600_000;
/** Upstreams and nodes come and go; the one that was warned of longest ago is forgotten first. */
const maxKnown = 1_000;
const none: ReadonlySet<string> = new Set();

interface LimitNames {
  readonly limitMembers: readonly (string | undefined)[];
}

export class UsageDoubts {
  readonly #clock: Clock;
  readonly #log: Log;
  /** Monotonic milliseconds of the last warning, by its name and that of the upstream. */
  readonly #warned = new Map<string, number>();
  /** Members by which a deployment was told a limit that it ignored, by upstream and model. */
  readonly #ignored = new Map<string, Set<string>>();

  constructor({ clock, log }: { clock: Clock; log: Log }) {
    this.#clock = clock;
    this.#log = log;
  }

  understated(upstream: string, model: string): void {
    const detail = "fewer tokens were reported than were delivered; an estimate is recorded in their place";
    this.#warn("usage_understated", upstream, { upstream, model, detail });
  }

  /** An answer of `deployment` is longer than the limit that it was told by the member `name`. */
  limitIgnored({ engine, model }: Deployment, name: string): void {
    const key = keyOf(engine.name, model);
    const names = this.#ignored.get(key) ?? new Set();
    names.add(name);
    forgetOldest(this.#ignored, key);
    this.#ignored.set(key, names);
    const detail = `an answer is longer than \`${name}\` allows; what was delivered is recorded, and other names of the limit are sent from now on`;
    this.#warn("limit_ignored", key, { upstream: engine.name, model, detail });
  }

  /** Names of the limits that the deployment has ignored. */
  ignoredLimits({ engine, model }: Deployment): ReadonlySet<string> {
    return this.#ignored.size === 0 ? none : (this.#ignored.get(keyOf(engine.name, model)) ?? none);
  }

  /** Reports whether a deployment of the model ignores the limit under all names that it has. */
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

/** Makes room for one more, which becomes the newest. */
function forgetOldest<Value>(map: Map<string, Value>, key: string): void {
  map.delete(key);
  const [oldest] = map.keys();
  if (oldest !== undefined && map.size >= maxKnown) map.delete(oldest);
}
