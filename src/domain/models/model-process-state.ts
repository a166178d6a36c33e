// The states of a model process that starts on demand.

/**
 * `waiting`: for memory. `waking`: from sleep. `restarting`: it died and is retried soon. `failed`: it died too often
 * or can never fit, and requests are refused for a while.
 */
export const modelProcessStates = [
  ...(["off", "waiting", "loading", "loaded", "asleep", "waking", "stopping", "restarting", "failed"] as const),
] as const;
export type ModelProcessState = (typeof modelProcessStates)[number];
