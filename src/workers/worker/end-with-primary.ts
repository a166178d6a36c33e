// Has the system end a worker together with its primary process, where the system is Linux.
import { dlopen } from "bun:ffi";
import { constants } from "node:os";

/** Of prctl(2): the signal that this process gets when its parent dies. */
const setParentDeathSignal = 1;

/**
 * A worker sees its link end, but only once it comes to look: one that is busy, or stopped, would hold the port and write to a
 * spool that the next start has taken over. Where the C library is another one it is left at that.
 */
export function endWithPrimary(): void {
  try {
    const { symbols } = dlopen("libc.so.6", {
      prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
    });
    symbols.prctl(setParentDeathSignal, constants.signals.SIGKILL, 0, 0, 0);
  } catch {
    // The link is left.
  }
}
