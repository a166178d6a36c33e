// Reports the begin and the end of incidents, once for all processes: the process that saw an incident first follows
// it.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Incident, IncidentStore } from "../../domain/notifications/incident.ts";
import type { Tidings } from "../../domain/notifications/notification.ts";
import type { Notifier } from "../notifications.ts";
import { PeriodicJob } from "./periodic-job.ts";

/** State of an incident, as this process sees it. */
export interface IncidentState {
  /** Unique name of the watched subject. */
  subject: string;
  isOut: boolean;
  /** Returns the notification of the begin. `since` is part of its `once`, so that repetitions are not stored. */
  began(since: number): Tidings;
  /** Returns the notification of the end; undefined if the end is not reported. */
  ended(since: number, nowSeconds: number): Tidings | undefined;
}

type Source = () => readonly IncidentState[] | Promise<readonly IncidentState[]>;

export interface IncidentWatchOptions {
  store: IncidentStore;
  teller: Notifier;
  /** Sources of incident states. Each returns its subjects, whether in order or not. */
  sources: readonly Source[];
  /** The id of this process, and the live processes. */
  replicaId: string;
  live(): readonly { id: string }[];
  clock: Clock;
  log: Log;
  /** Interval of the check. Default ten seconds. */
  everyMs?: number;
}

const defaultEveryMs = 10_000;
/** Time after the start in which no incident ends, because a new process has not seen its sources fail yet. */
const learningMs = 120_000;

export class IncidentWatch {
  readonly #options: IncidentWatchOptions;
  readonly #rounds: PeriodicJob;
  readonly #startedMs: number;
  readonly #sources: Source[];

  constructor(options: IncidentWatchOptions) {
    this.#options = options;
    this.#sources = [...options.sources];
    this.#startedMs = options.clock.monotonicMs();
    const { log, everyMs = defaultEveryMs } = options;
    this.#rounds = new PeriodicJob(() => this.#check(), { everyMs, name: "incidents_not_watched", log });
  }

  /** Adds a source for the next check on. */
  also(source: Source): void {
    this.#sources.push(source);
  }

  check(): Promise<void> {
    return this.#rounds.round();
  }

  close(): Promise<void> {
    return this.#rounds.close();
  }

  async #check(): Promise<void> {
    const { store, replicaId } = this.#options;
    const seen = await Promise.all(this.#sources.map((source) => source()));
    const states = new Map(seen.flat().map((state) => [state.subject, state]));
    const known = await store.list();
    for (const incident of known) {
      if (this.#rounds.isClosed) return;
      // The process that reported an incident follows it while that process is alive.
      if (incident.replicaId === replicaId || this.#isGone(incident.replicaId)) {
        await this.#update(incident, states.get(incident.subject));
      }
      states.delete(incident.subject);
    }
    for (const state of states.values()) {
      if (this.#rounds.isClosed) return;
      if (state.isOut) await this.#begin(state);
    }
  }

  #isGone(replicaId: string): boolean {
    return this.#options.live().every(({ id }) => id !== replicaId);
  }

  async #begin(state: IncidentState): Promise<void> {
    const { store, teller, replicaId, clock } = this.#options;
    const since = clock.nowSeconds();
    if (!(await store.begin({ subject: state.subject, replicaId, since }))) return;
    await teller.notify(state.began(since));
  }

  /** Follows an incident. The end of a subject that was removed from the configuration is not reported. */
  async #update({ subject, replicaId, since }: Incident, state: IncidentState | undefined): Promise<void> {
    const { store, teller, clock, replicaId: own } = this.#options;
    if (state?.isOut) {
      if (replicaId !== own) await store.adopt(subject, replicaId, own);
      // A crash or a database outage may have prevented the first report, so it is repeated.
      await teller.notify(state.began(since));
      return;
    }
    if (clock.monotonicMs() - this.#startedMs < learningMs) return;
    const over = state?.ended(since, clock.nowSeconds());
    if (over && !(await teller.notify(over))) return;
    await store.end(subject, replicaId);
  }
}

/** Builds a notification for operators about an incident that began at `since`. */
export function operatorTidings<Type extends string, Data>(type: Type, subject: string, since: number, data: Data) {
  return { type, accountId: null, environment: null, once: `${type} ${subject} ${since}`, data };
}
