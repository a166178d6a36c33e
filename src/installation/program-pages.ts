// Gives the pages of the program's own files back to the system, where the system is Linux.
import { dlopen } from "bun:ffi";
import { readFileSync } from "node:fs";

/** Advice for madvise(2). */
const dontNeed = 4;

/**
 * A start runs through most of Bun's code, which stays mapped: some 40 MB that count as this process's memory. What is used
 * again comes back from the system's cache of the file by itself. Only what cannot be written to, and of which this process
 * has no copy of its own, is given back, so nothing can be lost.
 */
export function releaseProgramPages(): void {
  if (process.platform !== "linux") return;
  const smaps = ownMappings();
  const libc = openLibc();
  for (const { start, end } of unchangedFileMappings(smaps)) libc?.symbols.madvise(start, end - start, dontNeed);
  libc?.close();
}

/** Empty where the system hides them, as some sandboxes do. */
function ownMappings(): string {
  try {
    return readFileSync("/proc/self/smaps", "utf8");
  } catch {
    return "";
  }
}

/** The mappings of files, as proc_pid_smaps(5) has them, that are read-only and without a page of this process's own. */
export function unchangedFileMappings(smaps: string): { start: bigint; end: bigint }[] {
  const found: { start: bigint; end: bigint }[] = [];
  let last: { start: bigint; end: bigint } | undefined;
  for (const line of smaps.split("\n")) {
    const [, start, end, inode] = /^([0-9a-f]+)-([0-9a-f]+) r-[-x]p [0-9a-f]+ \S+ (\d+)/.exec(line) ?? [];
    if (start !== undefined && end !== undefined) {
      last = inode === "0" ? undefined : { start: BigInt(`0x${start}`), end: BigInt(`0x${end}`) };
    } else if (/^[0-9a-f]+-[0-9a-f]+ /.test(line)) {
      last = undefined;
    } else if (last && /^Anonymous: +0 kB$/.test(line)) {
      found.push(last);
    }
  }
  return found;
}

/** Undefined where the C library is another one. */
function openLibc() {
  try {
    return dlopen("libc.so.6", { madvise: { args: ["u64", "u64", "i32"], returns: "i32" } });
  } catch {
    return undefined;
  }
}
