// Finds the processes that a command started, whatever became of their parents, by a variable that only they have.
import { readdirSync, readFileSync } from "node:fs";
import { exactMs } from "../../base/clock.ts";

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

const lookMs = 5;
/** What the system itself cannot end, as it waits for a broken disk, is not waited for any longer. */
const mostWaitMs = 10_000;

/** Ends them, also what they start meanwhile, and resolves once they are gone. Gives how many there were. */
export async function endMarked(mark: string): Promise<number> {
  const ended = new Set<number>();
  const untilMs = exactMs() + mostWaitMs;
  for (let pids = markedProcesses(mark); pids.length > 0 && exactMs() < untilMs; pids = markedProcesses(mark)) {
    for (const pid of pids) {
      ended.add(pid);
      kill(pid, "SIGKILL");
    }
    await Bun.sleep(lookMs);
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
