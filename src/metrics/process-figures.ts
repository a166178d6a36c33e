// Metrics about this process, with the names that Prometheus' client libraries use.
import { readFileSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import type { Exposition } from "./exposition.ts";

export interface ProcessFigures {
  /** Number of open file descriptors; undefined if the system does not report it. */
  openDescriptors: number | undefined;
}

export async function readProcess(): Promise<ProcessFigures> {
  return { openDescriptors: await openDescriptors() };
}

/** `startedAt`: Unix seconds. */
export function writeProcess(out: Exposition, startedAt: number, { openDescriptors }: ProcessFigures): void {
  writeUse(out);
  out.gauge("process_start_time_seconds", "Start time in Unix seconds.", startedAt);
  if (openDescriptors !== undefined) out.gauge("process_open_fds", "Open file descriptors.", openDescriptors);
  if (maxDescriptors !== undefined)
    out.gauge("process_max_fds", "Maximum number of open file descriptors.", maxDescriptors);
}

/** Writes the metrics that are added up over all processes of the server. */
export function writeUse(out: Exposition): void {
  const { rss, heapUsed, heapTotal } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  out.counter("process_cpu_seconds_total", "CPU time of user and system.", (user + system) / 1e6);
  out.gauge("process_resident_memory_bytes", "Resident memory, without the workers of the built-in engine.", rss);
  out.gauge("headrace_heap_used_bytes", "Used heap of the JavaScript engine at the last garbage collection.", heapUsed);
  out.gauge("headrace_heap_size_bytes", "Heap size of the JavaScript engine.", heapTotal);
}

/**
 * Counts open file descriptors asynchronously, because listing thousands may take tens of milliseconds on older
 * kernels.
 */
async function openDescriptors(): Promise<number | undefined> {
  try {
    // Linux 6.2 and later report the count as the size.
    const { size } = await stat("/proc/self/fd");
    return size > 0 ? size : (await readdir("/proc/self/fd")).length;
  } catch {
    return undefined;
  }
}

const maxDescriptors = readLimit();

function readLimit(): number | undefined {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}
