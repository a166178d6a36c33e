// A lock file that allows one pull per model, because two pulls would write into the same partial file.
import { readFile, readlink, rm, symlink } from "node:fs/promises";
import { isProcessAlive } from "./process-alive.ts";
import { SetupError } from "./setup-error.ts";

const held = new Set<string>();

/**
 * Creates the lock file and resolves to a function that removes it. Replaces the lock of a process that has
 * died. Rejects with a SetupError while another pull holds the lock.
 */
export async function claimPull(path: string, id: string): Promise<() => Promise<void>> {
  for (let attempt = 0; attempt < 3; attempt++) {
    if (await tryClaim(path)) {
      held.add(path);
      return async () => {
        held.delete(path);
        await rm(path, { force: true });
      };
    }
    const holder = await holderOf(path);
    if (holder === undefined) continue;
    if (isHeld(holder, path)) break;
    await rm(path, { force: true });
  }
  throw new SetupError(`Another headrace pull is fetching ${id}. Wait for it to end; if none runs, delete ${path}.`);
}

/**
 * Creates the lock as a symbolic link whose target is the process id. A link is created atomically and takes no
 * space, so that this works on a full disk too.
 */
async function tryClaim(path: string): Promise<boolean> {
  try {
    await symlink(String(process.pid), path);
    return true;
  } catch (error) {
    if (codeOf(error) === "EEXIST") return false;
    throw error;
  }
}

/** Returns the process id in the lock, or undefined if the lock no longer exists. */
async function holderOf(path: string): Promise<number | undefined> {
  try {
    return Number(await readlink(path));
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    // Earlier versions wrote a file with the process id.
    return Number(await readFile(path, "utf8").catch(() => ""));
  }
}

function isHeld(pid: number, path: string): boolean {
  // In a container, each start may have the same process id. So a lock with this process's id that this process does
  // not hold is left over from an earlier start.
  return pid === process.pid ? held.has(path) : isProcessAlive(pid);
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && "code" in error ? error.code : undefined;
}
