// What operators see of a process that serves models and is started for requests.

/**
 * `waiting`: for memory. `waking`: from sleep. `restarting`: it died, and is tried again in a moment. `failed`: it died too
 * often, or can never fit; requests are refused for a while.
 */
export const modelProcessStates = [
  ...(["off", "waiting", "loading", "loaded", "asleep", "waking", "stopping", "restarting", "failed"] as const),
] as const;
export type ModelProcessState = (typeof modelProcessStates)[number];

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
