// A store of one response in the background that is slow, fails, and sometimes fails only after it has written.
import type {
  BackgroundStore,
  EventBatch,
  ResponseStatus,
  RunState,
  StoredItem,
} from "../../src/domain/models/stored-response.ts";

export interface Unsteady {
  /** A number from 0 to below 1. */
  draw(): number;
  /** The longest that a call takes. */
  maxMs: number;
  /** Share of calls that fail, half of them after the fact. */
  failing: number;
}

type RunStore = Pick<BackgroundStore, "progress" | "end" | "state" | "events">;

export class UnsteadyRunStore implements RunStore {
  status: ResponseStatus | undefined = "queued";
  response: StoredItem = {};
  readonly batches = new Map<number, readonly string[]>();
  isCancelled = false;
  /** Characters of responses that were written. */
  writtenSize = 0;
  readonly #unsteady: Unsteady;

  constructor(unsteady: Unsteady) {
    this.#unsteady = unsteady;
  }

  /** All of them, in their order. */
  get all(): readonly string[] {
    return [...this.batches].sort(([a], [b]) => a - b).flatMap(([, events]) => events);
  }

  get isRunning(): boolean {
    return this.status === "queued" || this.status === "in_progress";
  }

  /** Somebody takes its process for dead, maybe at the very moment of its end. */
  endElsewhere(): void {
    if (!this.isRunning) return;
    this.status = "failed";
    const number = this.all.length;
    const response = { status: "failed" };
    this.#add({
      first: number,
      events: [JSON.stringify({ type: "response.failed", sequence_number: number, response })],
    });
  }

  progress(
    _: string,
    { status, response, events }: { status: ResponseStatus; response?: StoredItem; events?: EventBatch },
  ): Promise<RunState> {
    return this.#does(() => {
      if (this.isRunning) {
        this.status = status;
        if (response) this.#respond(response);
        this.#add(events);
      }
      return this.#state;
    });
  }

  end(_: string, state: { status: ResponseStatus; response: StoredItem; events?: EventBatch }): Promise<boolean> {
    return this.#does(() => {
      if (!this.isRunning) return false;
      this.status = state.status;
      this.#respond(state.response);
      this.#add(state.events);
      return true;
    });
  }

  state(): Promise<RunState> {
    return this.#does(() => this.#state);
  }

  events(_: string, after: number, maxSize: number): Promise<readonly EventBatch[]> {
    return this.#does(() => {
      const found: EventBatch[] = [];
      let size = 0;
      for (const [first, events] of [...this.batches].sort(([a], [b]) => a - b)) {
        const seen = Math.max(0, after + 1 - first);
        if (seen >= events.length) continue;
        size += events.join("").length;
        if (found.length > 0 && size > maxSize) break;
        found.push({ first: first + seen, events: events.slice(seen) });
      }
      return found;
    });
  }

  get #state(): RunState {
    return this.status && { status: this.status, isCancelled: this.isCancelled };
  }

  #respond(response: StoredItem): void {
    this.response = response;
    this.writtenSize += JSON.stringify(response).length;
  }

  #add(batch: EventBatch | undefined): void {
    if (!batch || batch.events.length === 0) return;
    const there = this.batches.get(batch.first);
    if (!there || there.length < batch.events.length) this.batches.set(batch.first, batch.events);
  }

  async #does<Result>(work: () => Result): Promise<Result> {
    const { draw, maxMs, failing } = this.#unsteady;
    const drawn = draw();
    await Bun.sleep(draw() * maxMs);
    if (drawn < failing / 2) throw new Error("It is away.");
    const result = work();
    await Bun.sleep(draw() * maxMs);
    if (drawn < failing) throw new Error("It was written, and nobody hears it.");
    return result;
  }
}
