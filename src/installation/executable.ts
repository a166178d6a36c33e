// The entry of the single file: unpacks the package that it carries, once, and becomes Bun with the program in it.
import { spawn } from "node:child_process";
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
  utimesSync,
} from "node:fs";
import { isAbsolute, join } from "node:path";
import { bunEnvironment } from "../../bin/bun-environment.mjs";
import { homeDirectory } from "./home.ts";
import archive from "./package.tar.zst" with { type: "file" };

/** `scripts/release/executables.ts` sets it: the SHA-256 of the package, by which its folder is named. */
declare const HEADRACE_DIGEST: string;
/** It sets this as well: how many files and folders are in the package. */
declare const HEADRACE_ENTRIES: number;

const cache = join(userCache(), "headrace");
const draftPrefix = ".unpacking-";
/** Unpacking takes seconds; a start that was killed leaves its draft. */
const draftLifetimeMs = 3_600_000;
const directory = join(cache, HEADRACE_DIGEST);

try {
  await unpack();
} catch (error) {
  process.stderr.write(
    `Headrace cannot unpack itself into ${directory}: ${error instanceof Error ? error.message : String(error)}. ` +
      `It needs some 60 MB there${freeThere()}, and leave to write; XDG_CACHE_HOME names another folder than ~/.cache.\n`,
  );
  process.exit(1);
}
become([join(directory, "app", "main.js"), ...process.argv.slice(2)]);

function userCache(): string {
  const named = Bun.env["XDG_CACHE_HOME"];
  // Relative values are to be ignored.
  if (named && isAbsolute(named)) return named;
  const home = homeDirectory(Bun.env);
  if (process.platform === "win32") return Bun.env["LOCALAPPDATA"] ?? join(home, "AppData", "Local");
  return process.platform === "darwin" ? join(home, "Library", "Caches") : join(home, ".cache");
}

/** What unpacks says of a full disk only that it could not. */
function freeThere(): string {
  try {
    const { bavail, bsize } = statfsSync(cache);
    return ` (${Math.floor((bavail * bsize) / 1e6)} MB are free)`;
  } catch {
    return "";
  }
}

async function unpack(): Promise<void> {
  const now = new Date();
  mkdirSync(cache, { recursive: true, mode: 0o700 });
  requireSafe(cache);
  if (existsSync(directory)) requireSafe(directory);
  if (isWhole()) {
    // What was used last is kept; root's folder may be used by others as well.
    if (process.getuid?.() === statSync(directory).uid) utimesSync(directory, now, now);
    return;
  }
  // Starts in several containers may share this cache and have the same process id.
  const draft = join(cache, `${draftPrefix}${crypto.randomUUID()}`);
  try {
    const packed = await Bun.file(archive).bytes();
    await new Bun.Archive(Bun.zstdDecompressSync(packed)).extract(draft);
    writeThrough(draft);
    utimesSync(draft, now, now);
    moveIntoPlace(draft);
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
  removeOlder();
}

/** Replaces a folder of which files are missing; leaves a whole one, which another start was faster to make. */
function moveIntoPlace(draft: string): void {
  try {
    renameSync(draft, directory);
  } catch (error) {
    if (isWhole()) return;
    if (!existsSync(directory)) throw error;
    const damaged = `${draft}-damaged`;
    renameSync(directory, damaged);
    renameSync(draft, directory);
    rmSync(damaged, { recursive: true, force: true });
  }
}

/** Those who clean caches take out of them what was not used for long. */
function isWhole(): boolean {
  return existsSync(directory) && readdirSync(directory, { recursive: true }).length >= HEADRACE_ENTRIES;
}

/** What is in the folder is run: whoever else may write there would be running as this user. */
function requireSafe(folder: string): void {
  const own = process.getuid?.();
  if (own === undefined) return;
  const { uid, mode } = statSync(folder);
  if (uid !== own && uid !== 0) throw new Error(`${folder} belongs to another user (${uid})`);
  if ((mode & 0o022) !== 0) throw new Error(`others may write into ${folder} (chmod go-w)`);
}

/** A folder that has its name is whole, also after a loss of power. */
function writeThrough(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = openSync(join(entry.parentPath, entry.name), "r+");
    fsyncSync(file);
    closeSync(file);
  }
}

/** Keeps the one that was used before: a server of that version may still run, and start its processes from there. */
function removeOlder(): void {
  const names = readdirSync(cache);
  const others = names.filter((name) => /^[0-9a-f]{64}$/.test(name) && name !== HEADRACE_DIGEST);
  const usedMs = (name: string) => statSync(join(cache, name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const older = others.sort((one, two) => usedMs(two) - usedMs(one)).slice(1);
  const abandonedMs = Date.now() - draftLifetimeMs;
  const abandoned = names.filter((name) => name.startsWith(draftPrefix) && usedMs(name) < abandonedMs);
  for (const name of [...older, ...abandoned]) rmSync(join(cache, name), { recursive: true, force: true });
}

/** Bun reads its settings at its start, so it is started again: in this process where the system can do that. */
function become(args: readonly string[]): void {
  const env = bunEnvironment({ BUN_BE_BUN: "1" });
  if (process.platform !== "win32" && process.execve) {
    process.execve(process.execPath, [process.execPath, ...args], env);
  }
  const child = spawn(process.execPath, args, { stdio: "inherit", env: { ...env, LAUNCHED_BY: "headrace" } });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
  child.on("exit", (code) => process.exit(code ?? 1));
}
