// Processor time and memory of processes, from Linux's /proc.
import { readdirSync, readFileSync } from "node:fs";

/** Processor time that processes used so far. */
export interface CpuSnapshot {
  /** Nanoseconds on a processor, by thread. */
  threads: ReadonlyMap<string, number>;
  /** Nanoseconds in which a thread could have run, and another one had the processor. */
  waitedNanos: number;
  /** Clock ticks of the processes, with threads that ended. */
  ticks: number;
}

/** Linux reports in hundredths of a second, whatever the kernel's own tick is: `getconf CLK_TCK`. */
const tickMicros = 10_000;
/** A window's ends fall within ticks, and the two figures are taken one after the other. */
const tolerance = 3;

/**
 * Reads the scheduler's own figures, by thread: the ticks in /proc/<pid>/stat are 10 ms each, too coarse for a window
 * of a second. They are kept beside for threads that end within a window, and for kernels without the scheduler's
 * figures.
 */
export function cpuSnapshot(pids: readonly number[]): CpuSnapshot {
  const threads = new Map<string, number>();
  let waitedNanos = 0;
  let ticks = 0;
  for (const pid of pids) {
    for (const thread of listIfThere(`/proc/${pid}/task`)) {
      const [nanos = "", waited = "0"] = readIfThere(`/proc/${pid}/task/${thread}/schedstat`).split(" ");
      if (nanos === "") continue;
      threads.set(thread, Number(nanos));
      waitedNanos += Number(waited);
    }
    const fields = fieldsOf(readIfThere(`/proc/${pid}/stat`));
    ticks += Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
  }
  return { threads, waitedNanos, ticks };
}

/** User and system time that all threads spent between the two, in microseconds. */
export function cpuMicros(before: CpuSnapshot, after: CpuSnapshot): number {
  let nanos = 0;
  for (const [thread, value] of after.threads) nanos += value - (before.threads.get(thread) ?? 0);
  const precise = nanos / 1000;
  const coarse = (after.ticks - before.ticks) * tickMicros;
  return coarse > precise + tolerance * tickMicros ? coarse : precise;
}

/** Resident memory of the processes together, in bytes. */
export function rssBytes(pids: readonly number[]): number {
  let kilobytes = 0;
  for (const pid of pids) kilobytes += Number(/^VmRSS:\s+(\d+) kB/m.exec(readIfThere(`/proc/${pid}/status`))?.[1] ?? 0);
  return kilobytes * 1024;
}

/** Memory of processes together, in bytes. */
export interface Memory {
  /** All pages that they have mapped. */
  rss: number;
  /** The same, with a share of those that others have mapped as well. */
  pss: number;
  /** Those that they have changed: what nothing but their end gives back. */
  dirty: number;
}

export function memoryOf(pids: readonly number[]): Memory {
  const memory = { rss: 0, pss: 0, dirty: 0 };
  for (const pid of pids) {
    const text = readIfThere(`/proc/${pid}/smaps_rollup`);
    const bytes = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
    memory.rss += bytes("Rss");
    memory.pss += bytes("Pss");
    memory.dirty += bytes("Private_Dirty");
  }
  return memory;
}

/**
 * Resident memory once it is at rest: the least of a few seconds, as a collector gives back what it freed a while later.
 */
export async function settledRssBytes(pids: readonly number[], waitMs: number): Promise<number> {
  const end = performance.now() + waitMs;
  let least = rssBytes(pids);
  while (performance.now() < end) {
    await Bun.sleep(100);
    least = Math.min(least, rssBytes(pids));
  }
  return least;
}

/** The process and all its descendants. */
export function processTree(root: number): number[] {
  const children = new Map<number, number[]>();
  for (const name of listIfThere("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const parent = Number(fieldsOf(readIfThere(`/proc/${name}/stat`))[1]);
    const siblings = children.get(parent);
    if (siblings) siblings.push(Number(name));
    else children.set(parent, [Number(name)]);
  }
  const tree = [root];
  for (const pid of tree) tree.push(...(children.get(pid) ?? []));
  return tree;
}

/** The fields of a line of /proc/<pid>/stat, from the state on: the name in parentheses before it may hold anything. */
function fieldsOf(stat: string): string[] {
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
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
