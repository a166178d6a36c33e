// The operator's view of a model process that starts on demand.
import type { Engine } from "./engine.ts";
import type { ModelProcessState } from "./model-process-state.ts";

export interface ModelProcessFigures {
  readonly state: ModelProcessState;
  /** Unix seconds since when it has this state. */
  readonly since: number;
  /** The reason of the last failure; null: none since it was loaded. */
  readonly failure: string | null;
  readonly pinned: boolean;
  /** Bytes by pool (`ram`, `gpu0` and so on) that are reserved for it, or needed to start it. */
  readonly memory: Readonly<Record<string, number>>;
  readonly inFlight: number;
  readonly waiting: number;
  /** The next four are counted since the start of the server. */
  readonly starts: number;
  readonly evictions: number;
  readonly failures: number;
  readonly loadSeconds: number;
}

/** A line of the process's output. */
export interface OutputLine {
  /** The line number, over all starts of the command. */
  readonly number: number;
  /** Unix seconds. */
  readonly at: number;
  readonly text: string;
}

/** A model process as its management sees it. */
export interface ModelProcessControl {
  /** Name of its engine. */
  readonly name: string;
  /** The engine that requests use. */
  readonly engine: Engine;
  readonly models: readonly string[];
  figures(): ModelProcessFigures;
  /** Returns the last lines after this number, the oldest first. */
  outputAfter(number: number): readonly OutputLine[];
  /** Starts to load it. */
  load(): void;
  /** Stops it when its open requests have ended. */
  unload(): void;
  pin(on: boolean): void;
}

export interface SharedMemory {
  /** Bytes by pool: total and reserved. */
  readonly pools: readonly { readonly pool: string; readonly total: number; readonly used: number }[];
  /** For each process that waits for memory, the names of those that have to end or yield first. */
  readonly behind: ReadonlyMap<string, readonly string[]>;
  /** Name of the next process to be stopped. Undefined: none can be. */
  readonly next: string | undefined;
}
