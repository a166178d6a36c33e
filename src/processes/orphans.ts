// Finds the processes that a command started, whatever became of their parents, by a variable that only they have.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { exactMs } from "../base/clock.ts";

/** Inherited by all that a command starts. Its value: a digest of the data directory's place, `#`, and the id of that one start. */
export const markVariable = "HEADRACE_MODEL_PROCESS";

/**
 * A path alone may be another directory to another container whose processes can be seen from here. The command gets a
 * digest of the place, and so does not learn where the data directory is.
 */
export function markOf(dataDir: string, startId: string): string {
  const place = statSync(dataDir, { throwIfNoEntry: false });
  const digest = createHash("sha256")
    .update(`${place?.dev ?? 0}:${place?.ino ?? 0}:${dataDir}`)
    .digest("hex");
  return `${digest.slice(0, 32)}#${startId}`;
}

/**
 * Processes of this user whose mark begins so, but for this one. Linux alone shows the environment of processes:
 * elsewhere none is found, and their process group is all that ends them.
 */
export function markedProcesses(mark: string): number[] {
  const wanted = `\0${markVariable}=${mark}`;
  return processIds().filter((pid) => pid !== process.pid && `\0${environmentOf(pid)}`.includes(wanted));
}

const pollMs = 5;
/** What the system itself cannot end, as it waits for a broken disk, is not waited for any longer. */
const maxWaitMs = 30_000;

/**
 * Ends them, also what they start meanwhile, and resolves once they, and those of `known` that others ended, have given
 * their memory back. Gives how many of the mark there were.
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

/**
 * A process that ends shows no environment any more from early on, while the system still frees its memory and closes its
 * files, that of a GPU among them. One that is just not asked for by its parent yet has neither.
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
    // It is another user's, or has ended.
    return "";
  }
}
