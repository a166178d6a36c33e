// The states of a process that serves models and is started for requests.

/**
 * `waiting`: for memory. `waking`: from sleep. `restarting`: it died, and is tried again in a moment. `failed`: it died too
 * often, or can never fit; requests are refused for a while.
 */
export const modelProcessStates = [
  ...(["off", "waiting", "loading", "loaded", "asleep", "waking", "stopping", "restarting", "failed"] as const),
] as const;
export type ModelProcessState = (typeof modelProcessStates)[number];
