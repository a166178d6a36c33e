// Entry point of the single-file executable: unpacks its package once, then starts Bun with the program in it.
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

/** Set by `scripts/release/executables.ts`: the SHA-256 of the package, which names its folder. */
declare const HEADRACE_DIGEST: string;
/** Set by `scripts/release/executables.ts`: the number of files and folders in the package, to detect missing ones. */
declare const HEADRACE_ENTRIES: number;

const cache = join(userCache(), "headrace");
const draftPrefix = ".unpacking-";
/**
 * Milliseconds after which a draft folder is deleted. Unpacking takes seconds; a killed start leaves its draft behind.
 */
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
  // The XDG Base Directory specification says to ignore relative values.
  if (named && isAbsolute(named)) return named;
  const home = homeDirectory(Bun.env);
  if (process.platform === "win32") return Bun.env["LOCALAPPDATA"] ?? join(home, "AppData", "Local");
  return process.platform === "darwin" ? join(home, "Library", "Caches") : join(home, ".cache");
}

/** Returns the free disk space as text for the error message, because the unpacker does not report a full disk. */
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
    // Updates the folder's time, because only recently used folders are kept. Other users cannot do that for a folder
    // of root.
    if (process.getuid?.() === statSync(directory).uid) utimesSync(directory, now, now);
    return;
  }
  // A random name, because several containers may share this cache and have equal process ids.
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

/**
 * Renames the draft to its final name. Replaces an incomplete folder, but keeps a complete one that another start
 * created.
 */
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

/** Reports whether all files of the folder exist, because cache cleaners may have deleted some. */
function isWhole(): boolean {
  return existsSync(directory) && readdirSync(directory, { recursive: true }).length >= HEADRACE_ENTRIES;
}

/** Throws if other users can write to the folder, because its content is executed. */
function requireSafe(folder: string): void {
  const own = process.getuid?.();
  if (own === undefined) return;
  const { uid, mode } = statSync(folder);
  if (uid !== own && uid !== 0) throw new Error(`${folder} belongs to another user (${uid})`);
  if ((mode & 0o022) !== 0) throw new Error(`others may write into ${folder} (chmod go-w)`);
}

/** Syncs the folder to the disk, so that a folder with the final name is complete even after a power cut. */
function writeThrough(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = openSync(join(entry.parentPath, entry.name), "r+");
    fsyncSync(file);
    closeSync(file);
  }
}

/**
 * Deletes older versions, except the one used last: a server of that version may still run and start processes from it.
 */
function removeOlder(): void {
  const names = readdirSync(cache);
  const others = names.filter((name) => /^[0-9a-f]{64}$/.test(name) && name !== HEADRACE_DIGEST);
  const usedMs = (name: string) => statSync(join(cache, name), { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const older = others.sort((one, two) => usedMs(two) - usedMs(one)).slice(1);
  const abandonedMs = Date.now() - draftLifetimeMs;
  const abandoned = names.filter((name) => name.startsWith(draftPrefix) && usedMs(name) < abandonedMs);
  for (const name of [...older, ...abandoned]) rmSync(join(cache, name), { recursive: true, force: true });
}

/**
 * Starts Bun again, because Bun reads its settings only at its start. Replaces this process if the system allows that.
 */
function become(args: readonly string[]): void {
  const env = bunEnvironment({ BUN_BE_BUN: "1" });
  if (process.platform !== "win32" && process.execve) {
    process.execve(process.execPath, [process.execPath, ...args], env);
  }
  const child = spawn(process.execPath, args, { stdio: "inherit", env: { ...env, LAUNCHED_BY: "headrace" } });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
  child.on("exit", (code) => process.exit(code ?? 1));
}
