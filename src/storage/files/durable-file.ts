// Files whose content was promised to somebody: content and name are on the disk when a function of this file returns.
import {
  closeSync,
  existsSync,
  fchmodSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";

/**
 * Replaces what `path` holds, or makes it, for its owner alone. Whoever reads meanwhile, and whoever reads after a power cut,
 * finds the old content or the new one, whole. Throws as the file system does, with `path` as it was.
 */
export function replaceFile(path: string, content: string): void {
  const draft = writeDraft(path, content);
  try {
    renameSync(draft, path);
  } catch (error) {
    unlinkSync(draft);
    throw error;
  }
  syncDirectory(dirname(path));
}

/** Makes the file for its owner alone, unless there is one: then that one stays. False where there was one. */
export function createFile(path: string, content: string): boolean {
  const draft = writeDraft(path, content);
  try {
    // A link never replaces: of two processes that do this at once, both read the same file afterwards.
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (!existsSync(path)) throw error;
    return false;
  } finally {
    unlinkSync(draft);
    syncDirectory(dirname(path));
  }
}

/** Makes a directory for its owner alone, with those above it that are missing. One that is there stays as it is. */
export function makeDirectory(path: string): void {
  if (existsSync(path)) return;
  const parent = dirname(path);
  makeDirectory(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if (!existsSync(path)) throw error;
  }
  syncDirectory(parent);
}

/** The names in a directory survive a power cut only once the directory itself was synced. Windows has no such call. */
export function syncDirectory(path: string): void {
  if (process.platform === "win32") return;
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function writeDraft(path: string, content: string): string {
  const draft = `${path}.${process.pid}`;
  const descriptor = openSync(draft, "w", 0o600);
  try {
    // A draft that a dead process left may have another mode.
    fchmodSync(descriptor, 0o600);
    writeFileSync(descriptor, content);
    fsyncSync(descriptor);
  } catch (error) {
    unlinkSync(draft);
    throw error;
  } finally {
    closeSync(descriptor);
  }
  return draft;
}
