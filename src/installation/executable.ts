// The entry of the single-file executable: unpacks its package once, and becomes Bun with the program in it.
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
/** Set by the same script: the number of files and folders in the package. */
declare const HEADRACE_ENTRIES: number;

const cache = join(userCache(), "headrace");
const draftPrefix = ".unpacking-";
/**
 * Milliseconds after which a draft folder counts as abandoned. Unpacking takes seconds; a killed start leaves its
 * draft.
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

/** Returns the free space as text, because the unpacker does not say that a disk is full, only that it failed. */
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
    // Marks the folder as used, because the folder that was used last is kept. A folder of root may also be used by
    // other users, who cannot mark it.
    if (process.getuid?.() === statSync(directory).uid) utimesSync(directory, now, now);
    return;
  }
  // Starts in several containers may share this cache and have equal process ids.
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

/** Replaces an incomplete folder; keeps a complete one that another start created first. */
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

/** Reports whether the folder is complete: programs that clean caches may remove files that were not used for long. */
function isWhole(): boolean {
  return existsSync(directory) && readdirSync(directory, { recursive: true }).length >= HEADRACE_ENTRIES;
}

/** The content of the folder is executed, so other users must not be able to write to it. */
function requireSafe(folder: string): void {
  const own = process.getuid?.();
  if (own === undefined) return;
  const { uid, mode } = statSync(folder);
  if (uid !== own && uid !== 0) throw new Error(`${folder} belongs to another user (${uid})`);
  if ((mode & 0o022) !== 0) throw new Error(`others may write into ${folder} (chmod go-w)`);
}

/** Writes the folder through to the disk, so that a folder with the final name is complete, also after a power cut. */
function writeThrough(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = openSync(join(entry.parentPath, entry.name), "r+");
    fsyncSync(file);
    closeSync(file);
  }
}

/** Keeps the previously used folder: a server of that version may still run and start processes from it. */
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
 * Starts Bun again, because Bun reads its settings only at its start. The new Bun replaces this process if the system
 * allows that.
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
