// Durable files: content and name are on disk when a function of this file returns.
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
 * Replaces or creates `path`, readable only by its owner. Readers find the whole old or the whole new content, also
 * after a power cut. If this throws the file system's error, `path` is unchanged.
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

/** Creates the file, readable only by its owner, unless it exists. Returns false if it existed. */
export function createFile(path: string, content: string): boolean {
  const draft = writeDraft(path, content);
  try {
    // Unlike a rename, a link never replaces a file, so two concurrent processes end up with the same file.
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

/** Creates a directory that only its owner can use, with missing parents. An existing directory stays unchanged. */
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

/** Syncs a directory, because new names survive a power cut only then. Windows has no such call. */
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
