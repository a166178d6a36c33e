// The states of a model process. The server starts such processes on demand.

/**
 * `waiting`: waits for memory. `waking`: wakes up from sleep. `restarting`: it ended and will be started again soon.
 * `failed`: it ended too often or can never fit, and requests are refused for a while.
 */
export const modelProcessStates = [
  ...(["off", "waiting", "loading", "loaded", "asleep", "waking", "stopping", "restarting", "failed"] as const),
] as const;
export type ModelProcessState = (typeof modelProcessStates)[number];
