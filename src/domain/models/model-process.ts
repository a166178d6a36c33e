// The operator's view of a model process that starts on demand.
import type { Engine } from "./engine.ts";
import type { ModelProcessState } from "./model-process-state.ts";

export interface ModelProcessFigures {
  readonly state: ModelProcessState;
  /** Unix seconds since which the process has this state. */
  readonly since: number;
  /** The reason of the last failure; null: no failure since the last load. */
  readonly failure: string | null;
  readonly pinned: boolean;
  /** Bytes by pool (`ram`, `gpu0` and so on) that are reserved for the process, or that it needs to start. */
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
  /** The line number, which keeps rising over all starts of the command. */
  readonly number: number;
  /** Unix seconds. */
  readonly at: number;
  readonly text: string;
}

/** A model process, for the code that loads, unloads and pins it. */
export interface ModelProcessControl {
  /** Name of the process's engine. */
  readonly name: string;
  /** The engine that requests use. */
  readonly engine: Engine;
  readonly models: readonly string[];
  figures(): ModelProcessFigures;
  /** Returns the last lines after this number, the oldest first. */
  outputAfter(number: number): readonly OutputLine[];
  /** Starts to load the model. */
  load(): void;
  /** Stops the process when none of its requests is running any more. */
  unload(): void;
  pin(on: boolean): void;
}

export interface SharedMemory {
  /** Bytes by pool: total and reserved. */
  readonly pools: readonly { readonly pool: string; readonly total: number; readonly used: number }[];
  /** The names of the processes that have to end or yield first, by the name of the process that waits for memory. */
  readonly behind: ReadonlyMap<string, readonly string[]>;
  /** Name of the next process to be stopped. Undefined: none can be. */
  readonly next: string | undefined;
}
