// A client's configuration file on this machine: found, read, and replaced whole.
import { existsSync, readFileSync, realpathSync, statSync, unlinkSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import { makeDirectory, replaceFile } from "../../storage/files/durable-file.ts";
import { CliError, type Env } from "../terminal/terminal.ts";
import type { ClientFile } from "./clients.ts";
import { SettingsError } from "./settings-text.ts";

/** More than any such file has: what is longer is no configuration. */
const mostBytes = 1_000_000;

/** Absolute. A file that is a link, as among dotfiles, is the one that it leads to. */
export function pathOf({ folder, otherFolder, names }: ClientFile, env: Env): string {
  const [variable = "", ...below] = otherFolder ?? [];
  const other = env[variable];
  const place = other?.startsWith("/") ? join(other, ...below) : join(env["HOME"] || homedir(), ...folder);
  const path = join(place, names.find((name) => existsSync(join(place, name))) ?? names[0]);
  return existsSync(path) ? realpathSync(path) : path;
}

/** Undefined where there is none. */
export function readClientFile(path: string): string | undefined {
  try {
    if (statSync(path).size > mostBytes) throw new CliError(`${path} has more than a megabyte: is it a configuration?`);
    return readFileSync(path, "utf8");
  } catch (error) {
    if (error instanceof CliError) throw error;
    if (codeOf(error) === "ENOENT") return undefined;
    throw new CliError(`${path} cannot be read (${codeOf(error)}).`);
  }
}

/** For its owner alone from here on, as a key may be in it. `before`: kept beside it, where it was there. */
export function writeClientFile(path: string, text: string, before: string | undefined): string | undefined {
  try {
    makeDirectory(dirname(path));
    const kept = before === undefined ? undefined : join(dirname(path), `${basename(path)}.before-headrace`);
    if (kept !== undefined && before !== undefined) replaceFile(kept, before);
    replaceFile(path, text);
    return kept;
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
