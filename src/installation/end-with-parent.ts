// Makes the kernel end this process when its parent ends (Linux only).
import { dlopen } from "bun:ffi";

/** Number of the prctl(2) operation that requests a signal at the death of the parent. */
const setParentDeathSignal = 1;
const sigkill = 9;

/**
 * Makes this process end with its parent. Otherwise a busy worker would notice late that its connection is closed, keep
 * the port, and write to a spool that a new process has taken over. Does nothing without the expected C library.
 */
export function endWithParent(): void {
  try {
    const { symbols } = dlopen("libc.so.6", {
      prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
    });
    symbols.prctl(setParentDeathSignal, sigkill, 0, 0, 0);
  } catch {
    // Without prctl, the worker notices the parent's end only by its closed connection.
  }
}
