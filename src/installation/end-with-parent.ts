// Has the system end this process together with the one that started it, where the system is Linux.
import { dlopen } from "bun:ffi";

/** The number by which prctl(2) is asked for a signal at the death of the parent. */
const setParentDeathSignal = 1;
const sigkill = 9;

/**
 * A worker sees its link end, but only once it comes to look: one that is busy, or stopped, would hold the port and write to a
 * spool that the next start has taken over. Where the C library is another one it is left at that.
 */
export function endWithParent(): void {
  try {
    const { symbols } = dlopen("libc.so.6", {
      prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
    });
    symbols.prctl(setParentDeathSignal, sigkill, 0, 0, 0);
  } catch {
    // The link is left.
  }
}
