// Finds all processes of a command, including orphans, by an environment variable that only they have.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { exactMs } from "../base/clock.ts";

/**
 * The environment variable that all processes of a command inherit. Its value is a digest that identifies the data
 * directory, then `#` and the id of that start.
 */
export const markVariable = "HEADRACE_MODEL_PROCESS";

/**
 * Returns the mark of a start. The same path may be another directory in another container whose processes are visible
 * here, so the digest includes device and inode. The command gets a digest, so it does not learn where the data
 * directory is.
 */
export function markOf(dataDir: string, startId: string): string {
  const directory = statSync(dataDir, { throwIfNoEntry: false });
  const digest = createHash("sha256")
    .update(`${directory?.dev ?? 0}:${directory?.ino ?? 0}:${dataDir}`)
    .digest("hex");
  return `${digest.slice(0, 32)}#${startId}`;
}

/**
 * Returns this user's processes whose mark begins with `mark`, except this process. Only Linux shows the environment of
 * processes; elsewhere none are found, and only their process group ends them.
 */
export function markedProcesses(mark: string): number[] {
  const wanted = `\0${markVariable}=${mark}`;
  return processIds().filter((pid) => pid !== process.pid && `\0${environmentOf(pid)}`.includes(wanted));
}

const pollMs = 5;
/**
 * Milliseconds to wait for the end of processes. A process that waits for a broken disk cannot be ended, and is not
 * awaited longer.
 */
const maxWaitMs = 30_000;

/**
 * Ends the processes with this mark, including any that they start meanwhile. Resolves once these processes, and the
 * processes `known` that were ended elsewhere, have freed their memory. Returns how many had the mark.
 */
export async function endMarked(mark: string, known: readonly number[] = []): Promise<number> {
  const ended = new Set<number>();
  const untilMs = exactMs() + maxWaitMs;
  const isOver = () => {
    for (const pid of markedProcesses(mark)) {
      ended.add(pid);
      kill(pid, "SIGKILL");
    }
    return ![...known, ...ended].some(holdsMemory);
  };
  while (!isOver() && exactMs() < untilMs) await Bun.sleep(pollMs);
  return ended.size;
}

/** Sends a signal. A negative number is a process group. Returns false if there is no such process or group. */
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

/**
 * Reports whether a process still has memory or open files. An ending process soon shows no environment, while the
 * system still frees its memory and closes its files, such as a GPU's. A zombie has neither.
 */
function holdsMemory(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, "latin1"));
  } catch {
    return false;
  }
}

function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, "latin1");
  } catch {
    // The process belongs to another user, or has ended.
    return "";
  }
}
