// Makes the system end this process together with its parent, on Linux.
import { dlopen } from "bun:ffi";

/** Number of the prctl(2) operation that requests a signal at the death of the parent. */
const setParentDeathSignal = 1;
const sigkill = 9;

/**
 * Makes this process end with its parent. A worker notices the end of its link only when it reads the link: a busy or
 * stopped worker would keep the port and write to a spool that the next start has taken over. Does nothing if the C
 * library is another one.
 */
export function endWithParent(): void {
  try {
    const { symbols } = dlopen("libc.so.6", {
      prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
    });
    symbols.prctl(setParentDeathSignal, sigkill, 0, 0, 0);
  } catch {
    // Then only the end of the link tells the worker that its parent has ended.
  }
}
