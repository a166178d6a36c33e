// Makes what was fetched survive a power cut: a model or an engine that was told to be there is there afterwards.
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";

/** The names in a directory. Windows has no call for it, and none is needed there. */
export async function syncNames(directory: string): Promise<void> {
  if (process.platform !== "win32") await syncOne(directory);
}

/** Every file and every name in and below a directory. */
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
