// Reads a secret from a file whose directory may change at any time: Kubernetes swaps a link, others rename a file.
import { constants, statSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import type { SecretRead } from "./secret-state.ts";

const maxBytes = 65_536;
/** Attempts while the file changes, or while the directory behind a link is replaced. */
const attempts = 5;
const pauseMs = 20;
const writableByOthers = 0o002;

const fixes: Readonly<Record<string, string>> = {
  ENOENT: "Correct the path, or mount the secret there.",
  EACCES: "Let the user who runs Headrace read the file and enter its directories.",
};

/**
 * Reads the text of a file, without the blanks and line breaks around it. Each attempt resolves symbolic links again.
 * Never rejects. A message contains the file's name and never its content.
 */
export async function readSecretFile(path: string): Promise<SecretRead> {
  let found: SecretRead = refused(path, "changes all the time", "Write the file anew and rename it into its place.");
  for (let attempt = 0; attempt < attempts; attempt++) {
    if (attempt > 0) await Bun.sleep(pauseMs);
    try {
      const read = await readOnce(path);
      if (read) return read;
    } catch (error) {
      const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
      const what = code === "ENOENT" ? "does not exist" : `cannot be read (${code})`;
      found = refused(path, what, fixes[code] ?? "Give the path of a file that the user who runs Headrace may read.");
      if (code !== "ENOENT") return found;
    }
  }
  return found;
}

/** Reads the file once. Returns undefined if it changed while it was read. */
async function readOnce(path: string): Promise<SecretRead | undefined> {
  // A named pipe without a writer would block the open.
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const before = await file.stat();
    if (!before.isFile()) return refused(path, "is not a regular file", "Give the path of a file.");
    if (process.platform !== "win32" && (before.mode & writableByOthers) !== 0) {
      return refused(path, "may be written by every user", `Run chmod o-w ${path}.`);
    }
    if (before.size > maxBytes) {
      return refused(
        path,
        `has ${before.size} bytes; a secret has at most ${maxBytes}`,
        "Give the file of one secret.",
      );
    }
    const bytes = await readWhole(file);
    const after = await file.stat();
    if (bytes.length !== after.size || after.size !== before.size || after.mtimeMs !== before.mtimeMs) return undefined;
    return textOf(path, bytes);
  } finally {
    await file.close();
  }
}

/** Reads at most one byte more than a secret may have. */
async function readWhole(file: FileHandle): Promise<Uint8Array> {
  const buffer = new Uint8Array(maxBytes + 1);
  let length = 0;
  while (length < buffer.length) {
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, length);
    if (bytesRead === 0) break;
    length += bytesRead;
  }
  return buffer.subarray(0, length);
}

function textOf(path: string, bytes: Uint8Array): SecretRead {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return refused(path, "is not UTF-8 text", "Store the secret as text.");
  }
  const value = text.trim();
  // Refuse an empty file. A tool may empty the file before it writes the new secret, and the secret in use must stay
  // meanwhile.
  if (value === "") return refused(path, "is empty", "Write the secret into the file.");
  return { ok: true, value };
}

function refused(path: string, what: string, fix: string): SecretRead {
  return { ok: false, message: `the file ${path} ${what}`, fix };
}

/**
 * Returns a text made of the file's identity, size and times, so that it differs after the file was changed or
 * replaced. Undefined if there is no file.
 */
export function markOf(path: string): string | undefined {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = statSync(path);
    return `${dev} ${ino} ${size} ${mtimeMs} ${ctimeMs}`;
  } catch {
    return undefined;
  }
}
