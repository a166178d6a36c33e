// Binds processes to processors: the gateway alone on one, what drives it on another, so that they do not share caches
// and time.
import { availableParallelism } from "node:os";

/** The beginning of a process's command line. */
export interface Placement {
  gateway: readonly string[];
  /** The load generator and the mock upstream. */
  load: readonly string[];
}

export const unplaced: Placement = { gateway: [], load: [] };

/** The prefixes for all processes. The kernel decides where the machine has one processor, or no taskset(1). */
export function choosePlacement(): Placement {
  const taskset = Bun.which("taskset");
  if (taskset === null || availableParallelism() < 2) return unplaced;
  return { gateway: [taskset, "-c", "0"], load: [taskset, "-c", "1"] };
}
