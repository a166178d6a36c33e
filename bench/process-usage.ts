// Processor time and memory of processes, from Linux's /proc.
import { readdirSync, readFileSync } from "node:fs";

/** Nanoseconds on a processor so far, by thread. */
export type CpuSnapshot = ReadonlyMap<string, number>;

/**
 * From the scheduler's own figures: the clock ticks in /proc/<pid>/stat are 10 ms each, too coarse for windows below a
 * second.
 */
export function cpuSnapshot(pids: readonly number[]): CpuSnapshot {
  const snapshot = new Map<string, number>();
  for (const pid of pids) {
    for (const thread of listIfThere(`/proc/${pid}/task`)) {
      const [nanos = ""] = readIfThere(`/proc/${pid}/task/${thread}/schedstat`).split(" ");
      if (nanos !== "") snapshot.set(thread, Number(nanos));
    }
  }
  return snapshot;
}

/** User and system time that all threads spent between the two, in microseconds; not of a thread that ended since. */
export function cpuMicros(before: CpuSnapshot, after: CpuSnapshot): number {
  let nanos = 0;
  for (const [thread, value] of after) nanos += value - (before.get(thread) ?? 0);
  return nanos / 1000;
}

/** Resident memory of the processes together, in bytes. */
export function rssBytes(pids: readonly number[]): number {
  let kilobytes = 0;
  for (const pid of pids) kilobytes += Number(/^VmRSS:\s+(\d+) kB/m.exec(readIfThere(`/proc/${pid}/status`))?.[1] ?? 0);
  return kilobytes * 1024;
}

/** The process and all its descendants. */
export function processTree(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of listIfThere("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = readIfThere(`/proc/${name}/stat`);
    // The name in parentheses may hold anything.
    const parent = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
    const siblings = children.get(parent);
    if (siblings) siblings.push(Number(name));
    else children.set(parent, [Number(name)]);
  }
  const tree = [root];
  for (const pid of tree) tree.push(...(children.get(pid) ?? []));
  return tree;
}

/** A thread or process may end between being listed and being read. */
function readIfThere(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function listIfThere(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
