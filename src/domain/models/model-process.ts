// What operators see of a process that serves models and is started for requests.
import type { Engine } from "./engine.ts";
import type { ModelProcessState } from "./model-process-state.ts";

export interface ModelProcessFigures {
  readonly state: ModelProcessState;
  /** Unix seconds since when it is in this state. */
  readonly since: number;
  /** Why it failed last; null: it did not since it was loaded. */
  readonly failure: string | null;
  readonly pinned: boolean;
  /** Bytes by pool, `ram` and `gpu0` and the like: what is set aside for it, or would be. */
  readonly memory: Readonly<Record<string, number>>;
  readonly inFlight: number;
  readonly waiting: number;
  /** These four are counted since the start of the server. */
  readonly starts: number;
  readonly evictions: number;
  readonly failures: number;
  readonly loadSeconds: number;
}

/** A line of what such a process wrote. */
export interface OutputLine {
  /** Rises by one with each line, over all starts of the command. */
  readonly number: number;
  /** Unix seconds. */
  readonly at: number;
  readonly text: string;
}

/** Such a process as those see it who look after it. */
export interface ModelProcessControl {
  /** Name of the engine that it is. */
  readonly name: string;
  /** The engine that requests go to. */
  readonly engine: Engine;
  readonly models: readonly string[];
  figures(): ModelProcessFigures;
  /** The last lines behind the one of this number, the oldest first. */
  outputAfter(number: number): readonly OutputLine[];
  /** Begins to load it. */
  load(): void;
  /** Stops it once nothing is in flight. */
  unload(): void;
  pin(on: boolean): void;
}

export interface SharedMemory {
  /** Bytes by pool: what there is, and what is set aside of it. */
  readonly pools: readonly { readonly pool: string; readonly total: number; readonly used: number }[];
  /** By the name of each that waits for memory, the names of those that have to end or to yield first. */
  readonly behind: ReadonlyMap<string, readonly string[]>;
  /** Name of the one that would leave first; undefined: none can. */
  readonly next: string | undefined;
}
