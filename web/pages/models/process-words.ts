// The states of a model process, in words.
import type { ModelProcess } from "../../api/types.ts";
import type { StateKind } from "../../parts/words/state.tsx";

export const processWords: Record<ModelProcess["state"], string> = {
  off: "Not loaded",
  waiting: "Waits for memory",
  loading: "Loading",
  loaded: "Loaded",
  asleep: "Asleep",
  waking: "Waking up",
  stopping: "Stopping",
  restarting: "Restarting",
  failed: "Failed",
};

export const processKinds: Record<ModelProcess["state"], StateKind> = {
  off: "plain",
  waiting: "waiting",
  loading: "waiting",
  loaded: "good",
  asleep: "plain",
  waking: "waiting",
  stopping: "waiting",
  restarting: "warning",
  failed: "bad",
};
