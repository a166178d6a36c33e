// Reports when incidents begin and end. If several processes see an incident, the first one to see it reports it.
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
  /**
   * Returns the notification that the incident began. The notification's `once` contains `since`, so that a repeated
   * notification of the same incident is not stored.
   */
  began(since: number): Tidings;
  /** Returns the notification that the incident ended; undefined if the end is not reported. */
  ended(since: number, nowSeconds: number): Tidings | undefined;
}

type Source = () => readonly IncidentState[] | Promise<readonly IncidentState[]>;

export interface IncidentWatchOptions {
  store: IncidentStore;
  teller: Notifier;
  /** Sources of incident states. Each returns all its subjects, with and without an incident. */
  sources: readonly Source[];
  /** The id of this process. */
  replicaId: string;
  live(): readonly { id: string }[];
  clock: Clock;
  log: Log;
  /** Interval of the check. Default ten seconds. */
  everyMs?: number;
}

const defaultEveryMs = 10_000;
/** No incident ends in this time after the start, because a new process has not seen any failure yet. */
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

  /** Adds a source, which is used from the next check on. */
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
      // The process that reported an incident updates it for as long as that process lives.
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

  /**
   * Updates a stored incident. The end of an incident is not reported if its subject was removed from the
   * configuration.
   */
  async #update({ subject, replicaId, since }: Incident, state: IncidentState | undefined): Promise<void> {
    const { store, teller, clock, replicaId: own } = this.#options;
    if (state?.isOut) {
      if (replicaId !== own) await store.adopt(subject, replicaId, own);
      // Notify again, because a crash or a database outage may have prevented the first notification.
      await teller.notify(state.began(since));
      return;
    }
    // If another process reported the incident, this process waits: soon after its start it has not seen any failure
    // yet.
    if (replicaId !== own && clock.monotonicMs() - this.#startedMs < learningMs) return;
    const over = state?.ended(since, clock.nowSeconds());
    if (over && !(await teller.notify(over))) return;
    await store.end(subject, replicaId);
  }
}

/** Builds a notification for operators about an incident that began at `since`. */
export function operatorTidings<Type extends string, Data>(type: Type, subject: string, since: number, data: Data) {
  return { type, accountId: null, environment: null, once: `${type} ${subject} ${since}`, data };
}
