// Finds the processes that a command started, whatever became of their parents, by a variable that only they have.
import { readdirSync, readFileSync } from "node:fs";

/** Inherited by all that a command starts. Its value: the data directory, `#`, and the id of that one start. */
export const markVariable = "HEADRACE_MODEL_PROCESS";

export function markOf(dataDir: string, startId: string): string {
  return `${dataDir}#${startId}`;
}

/**
 * Processes of this user whose mark begins so, but for this one. Linux alone shows the environment of processes:
 * elsewhere none is found, and their process group is all that ends them.
 */
export function markedProcesses(mark: string): number[] {
  const wanted = `\0${markVariable}=${mark}`;
  return processIds().filter((pid) => pid !== process.pid && `\0${environmentOf(pid)}`.includes(wanted));
}

/** Ends them at once, also what they start meanwhile. Gives how many there were. */
export function endMarked(mark: string): number {
  const ended = new Set<number>();
  for (let pids = markedProcesses(mark); pids.length > 0; pids = markedProcesses(mark)) {
    // One that was killed keeps its environment for a moment.
    if (pids.every((pid) => ended.has(pid))) break;
    for (const pid of pids) {
      ended.add(pid);
      kill(pid, "SIGKILL");
    }
  }
  return ended.size;
}

/** A negative number is a process group. False where there is none. */
export function kill(pid: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}

function processIds(): number[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    // It is another user's, or has ended.
    return "";
  }
}
