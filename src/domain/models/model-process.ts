// A model process, which starts on demand, as operators see and control it.
import type { Engine } from "./engine.ts";
import type { ModelProcessState } from "./model-process-state.ts";

export interface ModelProcessFigures {
  readonly state: ModelProcessState;
  /** Unix seconds since which the process has this state. */
  readonly since: number;
  /** The reason of the last failure. Null if it has not failed since the last load. */
  readonly failure: string | null;
  readonly pinned: boolean;
  /** Bytes by memory pool (`ram`, `gpu0` and so on): reserved for the process, or needed to start it. */
  readonly memory: Readonly<Record<string, number>>;
  readonly inFlight: number;
  readonly waiting: number;
  /** `starts`, `evictions`, `failures` and `loadSeconds` are totals since the start of the server. */
  readonly starts: number;
  readonly evictions: number;
  readonly failures: number;
  readonly loadSeconds: number;
}

/** A line of the process's output. */
export interface OutputLine {
  /** The line number. It keeps rising when the process is started again. */
  readonly number: number;
  /** Unix seconds. */
  readonly at: number;
  readonly text: string;
}

/** Controls a model process: loads, unloads and pins the model. */
export interface ModelProcessControl {
  /** Name of the process's engine. */
  readonly name: string;
  /** The engine to which requests are sent. */
  readonly engine: Engine;
  readonly models: readonly string[];
  figures(): ModelProcessFigures;
  /** Returns the last output lines with a higher number than this, oldest first. */
  outputAfter(number: number): readonly OutputLine[];
  /** Starts to load the model. */
  load(): void;
  /** Stops the process when none of its requests is running any more. */
  unload(): void;
  pin(on: boolean): void;
}

export interface SharedMemory {
  /** Memory pools, each with its total and reserved bytes. */
  readonly pools: readonly { readonly pool: string; readonly total: number; readonly used: number }[];
  /** For each process that waits for memory, the names of the processes that have to end or yield first. */
  readonly behind: ReadonlyMap<string, readonly string[]>;
  /** Name of the process that would be stopped next to free memory. Undefined if none can be stopped. */
  readonly next: string | undefined;
}
