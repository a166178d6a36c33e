// One writer a model: two pulls of the same model would write into the same part.
import { link, readFile, rm, writeFile } from "node:fs/promises";
import { isProcessAlive } from "./process-alive.ts";
import { SetupError } from "./setup-error.ts";

const held = new Set<string>();

/**
 * Claims `path` for this process and resolves to the release. A lock whose process is gone, as after `kill -9`, is
 * taken over. Rejects with a SetupError while another process holds it.
 */
export async function claimPull(path: string, id: string): Promise<() => Promise<void>> {
  // Linked into place, so that nobody ever reads a lock without its process id.
  const own = `${path}.${process.pid}`;
  await writeFile(own, String(process.pid), { mode: 0o644 });
  try {
    for (let attempt = 0; attempt < 3; attempt++) {
      if (await tryLink(own, path)) {
        held.add(path);
        return async () => {
          held.delete(path);
          await rm(path, { force: true });
        };
      }
      const holder = Number(await readFile(path, "utf8").catch(() => ""));
      if (isHeld(holder, path)) break;
      await rm(path, { force: true });
    }
  } finally {
    await rm(own, { force: true });
  }
  throw new SetupError(`Another headrace pull is fetching ${id}. Wait for it to end; if none runs, delete ${path}.`);
}

async function tryLink(own: string, path: string): Promise<boolean> {
  try {
    await link(own, path);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

function isHeld(pid: number, path: string): boolean {
  // In a container every run may get the same process id: our own number on a lock that we do not hold is a leftover.
  return pid === process.pid ? held.has(path) : isProcessAlive(pid);
}
