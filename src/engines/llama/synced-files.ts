// Makes downloads survive a power failure: a model or engine that was reported as installed is there afterwards.
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";

/** Writes the names in a directory to the disk. Windows has no call for that and needs none. */
export async function syncNames(directory: string): Promise<void> {
  if (process.platform !== "win32") await syncOne(directory);
}

/** Writes every file and name in and below a directory to the disk. */
export async function syncTree(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await syncTree(path);
    else if (entry.isFile()) await syncOne(path);
  }
  await syncNames(directory);
}

async function syncOne(path: string): Promise<void> {
  const handle = await open(path, "r");
  await handle.sync().finally(() => handle.close());
}
