// The process's use of the machine, under the names that Prometheus' own clients give it.
import { readFileSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import type { Exposition } from "./exposition.ts";

export interface ProcessFigures {
  /** Undefined where the system does not say. */
  openDescriptors: number | undefined;
}

export async function readProcess(): Promise<ProcessFigures> {
  return { openDescriptors: await openDescriptors() };
}

/** `startedAt`: Unix seconds. */
export function writeProcess(out: Exposition, startedAt: number, { openDescriptors }: ProcessFigures): void {
  writeUse(out);
  out.gauge("process_start_time_seconds", "Start, in Unix seconds.", startedAt);
  if (openDescriptors !== undefined) out.gauge("process_open_fds", "Open file descriptors.", openDescriptors);
  if (maxDescriptors !== undefined) out.gauge("process_max_fds", "File descriptors that it may have.", maxDescriptors);
}

/** What those of several processes add up to. */
export function writeUse(out: Exposition): void {
  const { rss, heapUsed, heapTotal } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  out.counter("process_cpu_seconds_total", "Processor time, of user and system.", (user + system) / 1e6);
  out.gauge("process_resident_memory_bytes", "Resident memory; workers of the built-in engine not included.", rss);
  out.gauge("headrace_heap_used_bytes", "Heap of the JavaScript engine in use, as of its last collection.", heapUsed);
  out.gauge("headrace_heap_size_bytes", "Heap of the JavaScript engine.", heapTotal);
}

/** Off the event loop: where thousands are open, listing them takes tens of milliseconds on older kernels. */
async function openDescriptors(): Promise<number | undefined> {
  try {
    // Linux 6.2 and later count them.
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
