// Makes this process the parent of processes below it whose own parent has ended (Linux only).
import { dlopen } from "bun:ffi";

/** The number of the prctl(2) operation that makes a process adopt the orphans below it. */
const setChildSubreaper = 36;
/** The option of waitpid(2) that does not wait for running processes. */
const noHang = 1;
const anyChild = -1;

/**
 * Begins to adopt orphans. Returns a function that removes all children that have ended from the system's table of
 * processes, and reports whether no child is left. Call it only when the runtime expects the end of no child any more.
 * Without the expected C library nothing is adopted.
 */
export function adoptOrphans(): () => boolean {
  try {
    const { symbols } = dlopen("libc.so.6", {
      prctl: { args: ["i32", "u64", "u64", "u64", "u64"], returns: "i32" },
      waitpid: { args: ["i32", "ptr", "i32"], returns: "i32" },
    });
    symbols.prctl(setChildSubreaper, 1, 0, 0, 0);
    return () => {
      let ended: number;
      do ended = symbols.waitpid(anyChild, null, noHang);
      while (ended > 0);
      return ended < 0;
    };
  } catch {
    return () => true;
  }
}
