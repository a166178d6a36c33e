// Flushes downloads to the disk, so that an installed model or engine survives a power failure.
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";

/** Flushes a directory's entries to the disk. Windows has no call for that and needs none. */
export async function syncNames(directory: string): Promise<void> {
  if (process.platform !== "win32") await syncOne(directory);
}

/** Flushes every file and directory in and below a directory to the disk. */
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
