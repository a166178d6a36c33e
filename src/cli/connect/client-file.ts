// A client's configuration file on this machine: found, read, and replaced whole.
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

/** More than any such file has: what is longer is no configuration. */
const maxBytes = 1_000_000;

/** Absolute. A file that is a link, as among dotfiles, is the one that it leads to. */
export function pathOf({ folder, otherFolder, names }: Omit<ClientFile, "settings">, env: Env): string {
  const [variable = "", ...below] = otherFolder ?? [];
  const other = env[variable];
  const place = other?.startsWith("/") ? join(other, ...below) : join(homeDirectory(env), ...folder);
  const path = join(place, names.find((name) => existsSync(join(place, name))) ?? names[0]);
  return existsSync(path) ? realpathSync(path) : path;
}

/** Undefined where there is none. */
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

/** Where a file stands as it was before. */
export function keptPathOf(path: string): string {
  return join(dirname(path), `${basename(path)}.before-headrace`);
}

/** Undefined where there is none. */
export function modeOf(path: string): number | undefined {
  return existsSync(path) ? statSync(path).mode & 0o777 : undefined;
}

/**
 * Refuses what would be replaced against its owner's will: whoever replaces a file takes it over, were it of another user,
 * protected from being written, or a link that leads to nothing.
 */
export function requireOwn(path: string): void {
  const link = lstatSync(path, { throwIfNoEntry: false });
  if (link?.isSymbolicLink()) throw new CliError(`${path} is a link to a file that is not there. Nothing was changed.`);
  const there = link ? path : nearestFolder(path);
  const [owner, self] = [statSync(there).uid, process.getuid?.()];
  // Whoever may write into a folder of others may have been let in; who may write everywhere was not.
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
  // Root may write it whatever its mode says.
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

/** Refuses where somebody has written it since it was read. */
export function requireUnchanged(path: string, before: string | undefined): void {
  if (readClientFile(path) === before) return;
  throw new CliError(`${path} was changed meanwhile. Nothing was written: run the command again.`);
}

export interface WriteOptions {
  /** For its owner alone unless told otherwise. */
  mode?: number | undefined;
  /** What is kept of it beside it. */
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

/** Does `work` on the text of the file; what is wrong with that is told with the file. */
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
