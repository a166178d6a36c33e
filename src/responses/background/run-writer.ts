// Writes what comes of a response in the background into its row: every second, and its end until the store has taken it.
import type { Clock } from "../../base/clock.ts";
import type { BackgroundStore, RunState, StoredItem } from "../../domain/models/stored-response.ts";
import type { RunEvents } from "./run-events.ts";
import type { StoreTurns } from "./store-turns.ts";

/** What is new is written so often: a death loses no more of it. */
const writeMs = 1_000;
/** Others are told so often that somebody works on it, also while a model is silent. */
export const workingMs = 5_000;
/** Whole items, which are written again with each new one, come to so many characters a second at most. */
const responsePerMs = 1_000;
/**
 * How long the end is tried to be written while the store is away: it is there alone, and its bytes are counted as long.
 * Who finds it abandoned meanwhile could not write that either.
 */
const endMs = 15 * 60_000;
const retryMs = 500;

/** What became of the end: `elsewhere`: somebody else has ended it, or what is in the store was written unheard. */
export type Written = "here" | "elsewhere" | "deleted" | "given_up";

export interface RunWriterOptions {
  id: string;
  events: RunEvents;
  background: Pick<BackgroundStore, "progress" | "end" | "state">;
  turns: StoreTurns;
  clock: Clock;
  /** The first `count` events are in the store. */
  written(count: number): void;
  /** Somebody wants it to end, or it has ended, or is gone. */
  stopped(): void;
}

export class RunWriter {
  readonly #options: RunWriterOptions;
  #timer: ReturnType<typeof setInterval> | undefined;
  #working: Promise<void> | undefined;
  #writtenAtMs: number;
  /** The response as its row has it, and the moment before which it is not written again. */
  #response: StoredItem | undefined;
  #responseDueMs = 0;
  /** Why it is not written any more. */
  #gone: "elsewhere" | "deleted" | undefined;
  /** True if another process took this one for dead and has ended the response. */
  #isAbandoned = false;
  /** True once `end` was called. */
  #isEnding = false;
  #triesUntilMs = Number.POSITIVE_INFINITY;

  constructor(options: RunWriterOptions) {
    this.#options = options;
    this.#writtenAtMs = options.clock.monotonicMs();
  }

  /** Once its row is there. */
  start(): void {
    this.#timer = setInterval(() => this.#tick(), writeMs);
  }

  /** Its row was deleted. */
  drop(): void {
    this.#gone ??= "deleted";
  }

  /** The end is not tried any longer than this. */
  giveUpAt(monotonicMs: number): void {
    this.#triesUntilMs = monotonicMs;
  }

  /**
   * Resolves to false where another process took this one for dead and has ended the response as failed, or its end could
   * not be written. From true on nobody takes this process for dead before `end` is called. Never rejects.
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
    const work = isDue || events.size > 0 ? this.#write() : this.#look();
    // While the store is away, which it says itself, what is new waits here.
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

  /** There is nothing new, but somebody may want it to end. */
  async #look(): Promise<void> {
    const { id, background, turns, clock } = this.#options;
    this.#heard(await turns.take(() => background.state(id, clock.nowSeconds())));
  }

  #heard(known: RunState): void {
    if (!known) this.drop();
    // Somebody took its process for dead.
    else if (known.status !== "queued" && known.status !== "in_progress") {
      this.#gone ??= "elsewhere";
      this.#isAbandoned = known.status === "failed";
    } else if (!known.isCancelled) return;
    this.#options.stopped();
  }
}
