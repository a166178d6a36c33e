// Writes a background response into its row: progress every second, and the end until the store accepts it.
import type { Clock } from "../../base/clock.ts";
import type { BackgroundStore, RunState, StoredItem } from "../../domain/models/stored-response.ts";
import type { RunEvents } from "./run-events.ts";
import type { StoreTurns } from "./store-turns.ts";

/** Interval of the writes. A crash loses no more progress than this. */
const writeMs = 1_000;
/** Interval of the heartbeat for other processes, also while the model sends nothing. */
export const workingMs = 5_000;
/** Maximum characters per millisecond for rewriting finished items, all of which are rewritten with each new item. */
const responsePerMs = 1_000;
/**
 * Time for which writing the end is retried while the store is unavailable. Until then the end is only in memory, and
 * its bytes count against the key's memory. During the outage no other process can end the response either.
 */
const endMs = 15 * 60_000;
const retryMs = 500;

/**
 * Outcome of writing the end. `elsewhere`: another process has ended the response, or an earlier write succeeded
 * although it reported an error.
 */
export type Written = "here" | "elsewhere" | "deleted" | "given_up";

export interface RunWriterOptions {
  id: string;
  events: RunEvents;
  background: Pick<BackgroundStore, "progress" | "end" | "state">;
  turns: StoreTurns;
  clock: Clock;
  /** Called when the first `count` events are stored. */
  written(count: number): void;
  /** Called when the response was cancelled or deleted, or when another process has ended it. */
  stopped(): void;
}

export class RunWriter {
  readonly #options: RunWriterOptions;
  #timer: ReturnType<typeof setInterval> | undefined;
  #working: Promise<void> | undefined;
  #writtenAtMs: number;
  /** The response as it was last written to its row, and the time before which it is not written again. */
  #response: StoredItem | undefined;
  #responseDueMs = 0;
  /** The reason why the response is no longer written; undefined before. */
  #gone: "elsewhere" | "deleted" | undefined;
  /** True if another process has ended the response, because that process considered this process dead. */
  #isAbandoned = false;
  /** True once `end` was called. */
  #isEnding = false;
  #triesUntilMs = Number.POSITIVE_INFINITY;

  constructor(options: RunWriterOptions) {
    this.#options = options;
    this.#writtenAtMs = options.clock.monotonicMs();
  }

  /** Starts the periodic writes after the row was created. */
  start(): void {
    this.#timer = setInterval(() => this.#tick(), writeMs);
  }

  /** Stops the writes after the row was deleted. */
  drop(): void {
    this.#gone ??= "deleted";
  }

  /** Sets the time after which writing the end is no longer retried. */
  giveUpAt(monotonicMs: number): void {
    this.#triesUntilMs = monotonicMs;
  }

  /**
   * Resolves to false if another process considered this process dead and failed the response, or if the store does not
   * answer in time. After true, no other process considers this process dead before `end` is called. Never rejects.
   */
  async isOurs(): Promise<boolean> {
    const { id, background, turns, clock, events } = this.#options;
    const untilMs = clock.monotonicMs() + endMs;
    await this.#working;
    while (!this.#isAbandoned && !this.#isEnding && this.#gone !== "deleted") {
      try {
        const state = { status: events.isOver ? ("in_progress" as const) : events.status };
        const known = await turns.take(() => background.progress(id, state, clock.nowSeconds()));
        return known?.status !== "failed";
      } catch {
        if (clock.monotonicMs() >= Math.min(untilMs, this.#triesUntilMs)) return false;
        await new Promise((resolve) => setTimeout(resolve, retryMs));
      }
    }
    return !this.#isAbandoned;
  }

  /** Writes the end, once. Never rejects. */
  async end(): Promise<Written> {
    const { id, background, turns, clock, events } = this.#options;
    this.#isEnding = true;
    clearInterval(this.#timer);
    const untilMs = clock.monotonicMs() + endMs;
    await this.#working;
    const { status, response, unstored } = events;
    while (!this.#gone) {
      try {
        const state = { status, response, events: unstored };
        return (await turns.take(() => background.end(id, state, clock.nowSeconds()))) ? "here" : "elsewhere";
      } catch {
        if (clock.monotonicMs() >= Math.min(untilMs, this.#triesUntilMs)) return "given_up";
        await new Promise((resolve) => setTimeout(resolve, retryMs));
      }
    }
    return this.#gone;
  }

  #tick(): void {
    const { events, clock } = this.#options;
    if (this.#working) return;
    const isDue = clock.monotonicMs() - this.#writtenAtMs >= workingMs;
    const work = isDue || events.size > 0 ? this.#write() : this.#check();
    // While the store is unavailable, new events wait in memory. The store logs its own outage.
    this.#working = work.catch(() => {}).finally(() => (this.#working = undefined));
  }

  async #write(): Promise<void> {
    const { id, events, background, turns, clock } = this.#options;
    const { status, response, responseSize } = events;
    const { first, events: unstored } = events.unstored;
    const some = { first, events: [...unstored] };
    const isNew = response !== this.#response && clock.monotonicMs() >= this.#responseDueMs;
    const state = { status, ...(isNew ? { response } : {}), events: some };
    const known = await turns.take(() => background.progress(id, state, clock.nowSeconds()));
    this.#writtenAtMs = clock.monotonicMs();
    if (isNew) {
      this.#response = response;
      this.#responseDueMs = this.#writtenAtMs + responseSize / responsePerMs;
    }
    this.#options.written(some.events.length);
    this.#heard(known);
  }

  /** Reads the state without writing, because a client may have cancelled the response. */
  async #check(): Promise<void> {
    const { id, background, turns, clock } = this.#options;
    this.#heard(await turns.take(() => background.state(id, clock.nowSeconds())));
  }

  #heard(known: RunState): void {
    if (!known) this.drop();
    // Another process has ended the response, perhaps because it took this process for dead.
    else if (known.status !== "queued" && known.status !== "in_progress") {
      this.#gone ??= "elsewhere";
      this.#isAbandoned = known.status === "failed";
    } else if (!known.isCancelled) return;
    this.#options.stopped();
  }
}
