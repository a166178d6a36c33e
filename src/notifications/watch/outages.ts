// Reports upstreams and nodes that are down for longer than a grace period, and upstreams that fail real requests.
import type { Clock } from "../../base/clock.ts";
import { attemptWindowSeconds, type UpstreamHealth } from "../../domain/usage/attempt-health.ts";
import { type IncidentState, operatorTidings } from "./incident-watch.ts";

/** Grace periods. Failures of upstreams and lost connections of nodes often last only a moment. */
const upstreamGraceMs = 30_000;
const nodeGraceMs = 60_000;

export interface OutageSources {
  /** Returns the upstreams, without nodes and the built-in engine. */
  upstreams(): readonly { name: string; isWell: boolean }[];
  /** Returns upstreams, with the state that attempts of real requests show. `isOwn`: this process saw the failures. */
  attempts(): readonly { upstream: string; health: UpstreamHealth; isOwn: boolean; isProven: boolean }[];
  /** Returns the nodes that have been connected before and are meant to serve requests. */
  nodes(): readonly { id: string; name: string; isConnected: boolean }[];
}

interface Seen {
  isOut: boolean;
  /** When the observed state began to differ from `isOut`, in monotonic milliseconds; undefined if they agree. */
  otherwiseMs: number | undefined;
}

export class Outages {
  readonly #sources: OutageSources;
  readonly #clock: Pick<Clock, "monotonicMs">;
  #seen = new Map<string, Seen>();
  /** Upstreams that this process saw fail, until no replica sees them fail. */
  readonly #failing = new Set<string>();

  constructor(sources: OutageSources, clock: Pick<Clock, "monotonicMs">) {
    this.#sources = sources;
    this.#clock = clock;
  }

  states(): IncidentState[] {
    const before = this.#seen;
    this.#seen = new Map();
    const upstreams = this.#sources.upstreams().map(({ name, isWell }): IncidentState => {
      const subject = `upstream:${name}`;
      return {
        subject,
        isOut: this.#isOut(subject, !isWell, upstreamGraceMs, before),
        began: (since) => operatorTidings("upstream.down", subject, since, { upstream: name, since }),
        ended: (since, now) =>
          operatorTidings("upstream.up", subject, since, { upstream: name, down_seconds: now - since }),
      };
    });
    const nodes = this.#sources.nodes().map(({ id, name, isConnected }): IncidentState => {
      const subject = `node:${id}`;
      const node = { node_id: id, name };
      return {
        subject,
        isOut: this.#isOut(subject, !isConnected, nodeGraceMs, before),
        began: (since) => operatorTidings("node.away", subject, since, { ...node, since }),
        ended: (since, now) => operatorTidings("node.back", subject, since, { ...node, away_seconds: now - since }),
      };
    });
    return [...upstreams, ...this.#failures(), ...nodes];
  }

  /** A failure that only another replica saw is reported by that replica. */
  #failures(): IncidentState[] {
    return this.#sources.attempts().map(({ upstream, health, isOwn, isProven }): IncidentState => {
      const subject = `failing:${upstream}`;
      if (isOwn) this.#failing.add(upstream);
      else if (!health.isFailing) this.#failing.delete(upstream);
      const { models, attempts, failed, last } = health;
      const { cause = null, status = null } = last ?? {};
      const figures = { models, cause, status, failed, attempts, window_seconds: attemptWindowSeconds };
      return {
        subject,
        isOut: this.#failing.has(upstream),
        // The subject contains the cause, so that a new cause is reported again.
        began: (since) =>
          operatorTidings("upstream.failing", `${subject} ${cause}`, since, { upstream, ...figures, since }),
        // If the upstream merely gets no more requests, it is unknown whether the upstream works, so its recovery is
        // not reported.
        ended: (since, now) =>
          isProven
            ? operatorTidings("upstream.recovered", subject, since, { upstream, failing_seconds: now - since })
            : undefined,
      };
    });
  }

  /** Returns the reported state, which changes only after the observed state has lasted for the grace period. */
  #isOut(subject: string, isOutNow: boolean, graceMs: number, before: ReadonlyMap<string, Seen>): boolean {
    const nowMs = this.#clock.monotonicMs();
    const { isOut, otherwiseMs } = before.get(subject) ?? { isOut: false, otherwiseMs: undefined };
    const sinceMs = isOutNow === isOut ? undefined : (otherwiseMs ?? nowMs);
    const hasChanged = sinceMs !== undefined && nowMs - sinceMs >= graceMs;
    const seen = hasChanged ? { isOut: isOutNow, otherwiseMs: undefined } : { isOut, otherwiseMs: sinceMs };
    this.#seen.set(subject, seen);
    return seen.isOut;
  }
}
