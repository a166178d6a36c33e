// Returns memory pages of the program's own files to the system (Linux only).
import { dlopen } from "bun:ffi";
import { readFileSync } from "node:fs";

/** The constant MADV_DONTNEED of madvise(2). */
const dontNeed = 4;

/**
 * Releases memory pages of the program's files. A start runs most of Bun's code, about 40 MB, which then counts as
 * memory of this process. Only unchanged read-only pages are released: if needed, the system reads them again from its
 * file cache.
 */
export function releaseProgramPages(): void {
  if (process.platform !== "linux") return;
  const smaps = ownMappings();
  const libc = openLibc();
  for (const { start, end } of unchangedFileMappings(smaps)) libc?.symbols.madvise(start, end - start, dontNeed);
  libc?.close();
}

/** Returns the memory mappings of this process. Empty if the system hides them, as some sandboxes do. */
function ownMappings(): string {
  try {
    return readFileSync("/proc/self/smaps", "utf8");
  } catch {
    return "";
  }
}

/** Returns the read-only mappings of files in which this process has changed no page (proc_pid_smaps(5)). */
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

/** Returns the system's C library; undefined if it has another name. */
function openLibc() {
  try {
    return dlopen("libc.so.6", { madvise: { args: ["u64", "u64", "i32"], returns: "i32" } });
  } catch {
    return undefined;
  }
}
