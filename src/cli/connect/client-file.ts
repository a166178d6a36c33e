// Finds, reads and replaces a client's configuration file on this machine.
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  lstatSync,
  readFileSync,
  realpathSync,
  statSync,
  unlinkSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { homeDirectory } from "../../installation/home.ts";
import { makeDirectory, replaceFile } from "../../storage/files/durable-file.ts";
import { CliError, type Env } from "../terminal/terminal.ts";
import type { ClientFile } from "./clients.ts";
import { SettingsError } from "./settings-text.ts";

/** A larger file is refused; no real configuration has this size. */
const maxBytes = 1_000_000;

/** Returns an absolute path. A symbolic link, as in dotfiles, is resolved to its target. */
export function pathOf({ folder, otherFolder, names }: Omit<ClientFile, "settings">, env: Env): string {
  const [variable = "", ...below] = otherFolder ?? [];
  const other = env[variable];
  const folderPath = other?.startsWith("/") ? join(other, ...below) : join(homeDirectory(env), ...folder);
  const path = join(folderPath, names.find((name) => existsSync(join(folderPath, name))) ?? names[0]);
  return existsSync(path) ? realpathSync(path) : path;
}

/** Returns the text of the file; undefined if there is no file. */
export function readClientFile(path: string): string | undefined {
  try {
    if (statSync(path).size > maxBytes) throw new CliError(`${path} has more than a megabyte: is it a configuration?`);
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof CliError) throw error;
    if (codeOf(error) === "ENOENT") return undefined;
    throw new CliError(`${path} cannot be read (${codeOf(error)}).`);
  }
}

/** Returns the path at which the original of the file is kept. */
export function keptPathOf(path: string): string {
  return join(dirname(path), `${basename(path)}.before-headrace`);
}

/** Returns the permission bits of the file; undefined if there is no file. */
export function modeOf(path: string): number | undefined {
  return existsSync(path) ? statSync(path).mode & 0o777 : undefined;
}

/** Throws a CliError if the file belongs to another user, is write-protected, or is a dangling link. */
export function requireOwn(path: string): void {
  const link = lstatSync(path, { throwIfNoEntry: false });
  if (link?.isSymbolicLink()) throw new CliError(`${path} is a link to a file that is not there. Nothing was changed.`);
  const there = link ? path : nearestFolder(path);
  const [owner, self] = [statSync(there).uid, process.getuid?.()];
  // A new file in another user's folder is allowed, because somebody probably granted this user the right to write
  // there. For root it is refused, because root may write everywhere without a grant.
  if (self !== undefined && owner !== self && (link !== undefined || self === 0)) {
    throw new CliError(
      `${there} belongs to another user, whose client could not read what is written now. Run headrace connect as that user${self === 0 ? ", without sudo" : ""}. Nothing was changed.`,
    );
  }
  if (link === undefined || isWritable(path)) return;
  throw new CliError(
    `${path} is protected from being written. Set by hand what headrace connect shows without --write, or let it be written with chmod u+w. Nothing was changed.`,
  );
}

function isWritable(path: string): boolean {
  // Root can write even a file whose mode is read-only, so the mode is checked first.
  if ((statSync(path).mode & 0o200) === 0) return false;
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function nearestFolder(path: string): string {
  const folder = dirname(path);
  return existsSync(folder) || folder === path ? folder : nearestFolder(folder);
}

/** Throws if another program has written the file since it was read. */
export function requireUnchanged(path: string, before: string | undefined): void {
  if (readClientFile(path) === before) return;
  throw new CliError(`${path} was changed meanwhile. Nothing was written: run the command again.`);
}

export interface WriteOptions {
  /** The file's mode. By default only its owner has access. */
  mode?: number | undefined;
  /** The original text of the file, to keep in a copy beside it. */
  kept?: string | undefined;
}

export function writeClientFile(path: string, text: string, { mode, kept }: WriteOptions = {}): void {
  try {
    makeDirectory(dirname(path));
    if (kept !== undefined) replaceFile(keptPathOf(path), kept);
    replaceFile(path, text);
    if (mode !== undefined) chmodSync(path, mode);
  } catch (error) {
    throw new CliError(`${path} cannot be written (${codeOf(error)}). Nothing was changed.`);
  }
}

export function removeClientFile(path: string): void {
  try {
    unlinkSync(path);
  } catch (error) {
    throw new CliError(`${path} cannot be removed (${codeOf(error)}).`);
  }
}

/** Runs `work` on the text of the file. If `work` throws a SettingsError, throws a CliError that names the file. */
export function understandingFile<Result>(path: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    throw new CliError(
      `${path}: ${error.message}. Mend it, or set by hand what headrace connect shows without --write. Nothing was changed.`,
    );
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
