// Tells what is out of order, once, and when it is in order again: of all processes the one that saw it first.
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Incident, IncidentStore } from "../../domain/notifications/incident.ts";
import type { Tidings } from "../../domain/notifications/notification.ts";
import type { Teller } from "../notifications.ts";
import { PeriodicJob } from "./periodic-job.ts";

/** How something stands, as this process sees it now. */
export interface IncidentState {
  /** Names it among all that is watched. */
  subject: string;
  isOut: boolean;
  /** `once` is made of `since`: who tells the same again tells nothing. */
  began(since: number): Tidings;
  /** Undefined: that it is over is told to nobody. */
  ended(since: number, nowSeconds: number): Tidings | undefined;
}

type Source = () => readonly IncidentState[] | Promise<readonly IncidentState[]>;

export interface IncidentWatchOptions {
  store: IncidentStore;
  teller: Teller;
  /** Those that watch; each gives what it knows, in order or not. */
  sources: readonly Source[];
  /** This process, and those that are there. */
  replicaId: string;
  live(): readonly { id: string }[];
  clock: Clock;
  log: Log;
  /** Default ten seconds. */
  everyMs?: number;
}

const defaultEveryMs = 10_000;
/** A process that has just started knows of nothing yet that it is out of order. */
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
    this.#rounds = new PeriodicJob(() => this.#look(), { everyMs, name: "incidents_not_watched", log });
  }

  /** Another one that watches, from the next look on. */
  also(source: Source): void {
    this.#sources.push(source);
  }

  look(): Promise<void> {
    return this.#rounds.round();
  }

  close(): Promise<void> {
    return this.#rounds.close();
  }

  async #look(): Promise<void> {
    const { store, replicaId } = this.#options;
    const seen = await Promise.all(this.#sources.map((source) => source()));
    const standings = new Map(seen.flat().map((standing) => [standing.subject, standing]));
    const known = await store.list();
    for (const incident of known) {
      if (this.#rounds.isClosed) return;
      // What another process sees is that one's to follow, as long as it is there.
      if (incident.replicaId === replicaId || this.#isGone(incident.replicaId)) {
        await this.#follow(incident, standings.get(incident.subject));
      }
      standings.delete(incident.subject);
    }
    for (const standing of standings.values()) {
      if (this.#rounds.isClosed) return;
      if (standing.isOut) await this.#begin(standing);
    }
  }

  #isGone(replicaId: string): boolean {
    return this.#options.live().every(({ id }) => id !== replicaId);
  }

  async #begin(standing: IncidentState): Promise<void> {
    const { store, teller, replicaId, clock } = this.#options;
    const since = clock.nowSeconds();
    if (!(await store.begin({ subject: standing.subject, replicaId, since }))) return;
    await teller.tell(standing.began(since));
  }

  /** Nothing is told of one that is gone from the configuration. */
  async #follow({ subject, replicaId, since }: Incident, standing: IncidentState | undefined): Promise<void> {
    const { store, teller, clock, replicaId: own } = this.#options;
    if (standing?.isOut) {
      if (replicaId !== own) await store.adopt(subject, replicaId, own);
      // A process may have died between the two, or the database have been away: then this tells it.
      await teller.tell(standing.began(since));
      return;
    }
    if (clock.monotonicMs() - this.#startedMs < learningMs) return;
    const over = standing?.ended(since, clock.nowSeconds());
    if (over && !(await teller.tell(over))) return;
    await store.end(subject, replicaId);
  }
}

/** What operators are told of something that is out of order since then. */
export function operatorTidings<Type extends string, Data>(type: Type, subject: string, since: number, data: Data) {
  return { type, accountId: null, environment: null, once: `${type} ${subject} ${since}`, data };
}
