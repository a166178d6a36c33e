// Installs a llama.cpp back-end with npm into a staging directory, checks it, and moves it into place.

import { chmod, mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { z } from "zod";
import { wallMs } from "../../base/clock.ts";
import { lockFile as ownLockFile, selfCommand } from "../../installation/paths.ts";
import { type DeviceSigns, deviceSigns } from "./device-signs.ts";
import { requireDiskSpace } from "./disk-space.ts";
import {
  type Backend,
  type BackendPackage,
  type BackendRecord,
  backendPackages,
  currentPlatform,
  enginesDirectory,
  libraryBytes,
  libraryPathIn,
  libraryVersion,
  readRecord,
  recordName,
} from "./engine-backends.ts";
import { type Env, findNpm, type Npm, runNpm } from "./npm-command.ts";
import { isProcessAlive } from "./process-alive.ts";
import { SetupError } from "./setup-error.ts";
import { syncNames, syncTree } from "./synced-files.ts";

export interface InstallRequest {
  /** The back-end that the user typed: `cuda`, `vulkan` or `cpu`. */
  name: string;
  dataDir: string;
  /** The environment for npm, such as PATH, proxies and npm's own configuration. */
  env: Env;
  signal: AbortSignal;
  /** The path of Headrace's lock file, which pins the versions and checksums of the library's dependencies. */
  lockFile?: string;
}

export interface InstallObserver {
  /** Called with the plan before anything is downloaded. If it rejects, nothing is downloaded. */
  planned(plan: InstallPlan): Promise<void>;
  /** Called with the bytes on disk so far. The final number is close to the planned one. */
  progress(bytes: number): void;
  /** Called once everything is on disk, before the library is started to find the devices. */
  checking(): void;
}

export interface InstallPlan {
  backend: Backend;
  packages: readonly string[];
  bytes: number;
  device: DeviceSigns;
}

export interface InstallResult {
  record: BackendRecord;
  /** True if this version was installed already, and only the devices were checked again. */
  alreadyThere: boolean;
}

const probeTimeoutMs = 60_000;
const progressIntervalMs = 500;

/**
 * Installs a back-end. Rejects with a SetupError or with the reason of `signal`, and leaves nothing behind.
 * Without a suitable device it succeeds with an empty `devices`, and the CPU is used.
 */
export async function installBackend(request: InstallRequest, observer: InstallObserver): Promise<InstallResult> {
  const { backend, packages } = backendPackages(request.name, currentPlatform());
  const directory = join(enginesDirectory(request.dataDir), backend);
  const present = await readRecord(directory);
  if (present?.version === libraryVersion) {
    observer.checking();
    const record = { ...present, devices: await findDevices(directory, backend, request.signal) };
    await writeRecord(directory, record);
    return { record, alreadyThere: true };
  }
  await mkdir(request.dataDir, { recursive: true, mode: 0o700 });
  await mkdir(enginesDirectory(request.dataDir), { recursive: true, mode: 0o755 });
  await sweep(enginesDirectory(request.dataDir));
  const staging = join(enginesDirectory(request.dataDir), `.installing-${backend}-${process.pid}`);
  try {
    const record = await build(request, observer, backend, packages, staging);
    await moveIntoPlace(staging, directory);
    return { record, alreadyThere: false };
  } finally {
    await rm(staging, { recursive: true, force: true });
  }
}

async function build(
  request: InstallRequest,
  observer: InstallObserver,
  backend: Backend,
  packages: readonly BackendPackage[],
  staging: string,
): Promise<BackendRecord> {
  const device = await deviceSigns(backend);
  const npm = findNpm(request.env);
  await mkdir(staging, { mode: 0o755 });
  const binaryBytes = await unpackedBytes(npm, staging, packages, request.signal);
  const planned = binaryBytes + libraryBytes;
  await requireDiskSpace(staging, planned, "Free some space, or choose another place with --data-dir.");
  await observer.planned({ backend, packages: packages.map(({ name }) => name), bytes: planned, device });
  request.signal.throwIfAborted();
  await writePackage(staging, backend, packages, request.lockFile ?? ownLockFile);
  await watchSize(join(staging, "node_modules"), observer, () =>
    // Optional dependencies are binaries for other platforms, so they are omitted.
    runNpm(npm, staging, ["install", "--ignore-scripts", "--omit=optional", "--omit=dev"], request.signal),
  );
  observer.checking();
  const record: BackendRecord = {
    backend,
    version: libraryVersion,
    bytes: await directoryBytes(staging),
    installedAt: Math.floor(wallMs() / 1000),
    devices: await findDevices(staging, backend, request.signal),
  };
  await writeRecord(staging, record);
  await syncTree(staging);
  return record;
}

const npmSize = z.union([z.number(), z.record(z.string(), z.number())]);

/**
 * Returns the unpacked size of the packages from the npm registry. Uses our own figures for packages without
 * one. This also reports an unreachable registry before anything is written.
 */
async function unpackedBytes(
  npm: Npm,
  directory: string,
  packages: readonly BackendPackage[],
  signal: AbortSignal,
): Promise<number> {
  const sizes = await Promise.all(
    packages.map(async ({ name, approximateBytes }) => {
      const output = await runNpm(
        npm,
        directory,
        // A missing network is reported within seconds here, not after a download times out.
        ["view", `${name}@${libraryVersion}`, "dist.unpackedSize", "--json", "--fetch-retries=1"],
        signal,
      );
      try {
        const size = npmSize.parse(JSON.parse(output));
        return typeof size === "number" ? size : (Object.values(size)[0] ?? approximateBytes);
      } catch {
        // npm mirrors omit the size.
        return approximateBytes;
      }
    }),
  );
  return sizes.reduce((sum, bytes) => sum + bytes, 0);
}

const lockSchema = z.object({ packages: z.record(z.string(), z.record(z.string(), z.unknown())) });

/** Writes a package.json with exact versions, and a lock file made from Headrace's own. */
async function writePackage(
  directory: string,
  backend: Backend,
  packages: readonly BackendPackage[],
  lockFile: string,
): Promise<void> {
  const names = ["node-llama-cpp", ...packages.map(({ name }) => name)];
  const root = {
    name: `headrace-engine-${backend}`,
    private: true,
    dependencies: Object.fromEntries(names.map((name) => [name, libraryVersion])),
  };
  await writeFile(join(directory, "package.json"), `${JSON.stringify(root, undefined, 2)}\n`);
  const ours = await readFile(lockFile, "utf8").catch(() => undefined);
  // Some ways of installing Headrace omit its lock file. npm then chooses the versions.
  if (ours === undefined) return;
  const locked = Object.entries(lockSchema.parse(JSON.parse(ours)).packages)
    .filter(([path, entry]) => path !== "" && entry["dev"] !== true)
    .map(([path, { cpu, ...entry }]) => [path, isNone(cpu) ? entry : { cpu, ...entry }]);
  const lock = {
    name: root.name,
    lockfileVersion: 3,
    requires: true,
    packages: { "": root, ...Object.fromEntries(locked) },
  };
  await writeFile(join(directory, "package-lock.json"), JSON.stringify(lock));
}

/**
 * Reports whether a package is a back-end outside the default install. Headrace's lock file marks it with the
 * cpu "none".
 */
function isNone(cpu: unknown): boolean {
  return Array.isArray(cpu) && cpu.includes("none");
}

/**
 * Returns the devices that the installed back-end finds, by starting the library in a child process. If it finds none,
 * the back-end must at least run on the CPU; otherwise throws a SetupError.
 */
async function findDevices(directory: string, backend: Backend, signal: AbortSignal): Promise<string[]> {
  if (backend !== "cpu") {
    const answer = await probe(directory, backend, signal);
    if ("devices" in answer && answer.devices.length > 0) return answer.devices;
  }
  const cpu = await probe(directory, "cpu", signal);
  if ("devices" in cpu) return [];
  throw new SetupError(`The ${backend} back-end was installed but does not start, not even on the CPU: ${cpu.error}`);
}

const probeAnswer = z.union([z.object({ devices: z.array(z.string()) }), z.object({ error: z.string() })]);

async function probe(directory: string, backend: Backend, signal: AbortSignal): Promise<z.infer<typeof probeAnswer>> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(probeTimeoutMs)]);
  const child = Bun.spawn([...selfCommand("probe-engine"), libraryPathIn(directory), backend], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "ignore",
    signal: limit,
    killSignal: "SIGKILL",
  });
  const [output, code] = await Promise.all([new Response(child.stdout).text(), child.exited]);
  signal.throwIfAborted();
  try {
    return probeAnswer.parse(JSON.parse(output.trim().split("\n").at(-1) ?? ""));
  } catch {
    return { error: limit.aborted ? "it hangs" : `it ended with code ${code}` };
  }
}

async function moveIntoPlace(staging: string, directory: string): Promise<void> {
  const old = `${staging}.old`;
  const replaced = await rename(directory, old).then(
    () => true,
    () => false,
  );
  await rename(staging, directory);
  await syncNames(dirname(directory));
  if (replaced) await rm(old, { recursive: true, force: true });
}

async function writeRecord(directory: string, record: BackendRecord): Promise<void> {
  const path = join(directory, recordName);
  const temporary = `${path}.${process.pid}.tmp`;
  await writeFile(temporary, `${JSON.stringify(record, undefined, 2)}\n`);
  await chmod(temporary, 0o644);
  await rename(temporary, path);
}

/** Removes the staging directories of installs that were killed. */
async function sweep(parent: string): Promise<void> {
  for (const name of await readdir(parent)) {
    const owner = /^\.(?:installing|removing)-\w+-(\d+)/.exec(name)?.[1];
    if (owner !== undefined && !isProcessAlive(Number(owner)))
      await rm(join(parent, name), { recursive: true, force: true });
  }
}

async function watchSize<Result>(
  directory: string,
  observer: InstallObserver,
  work: () => Promise<Result>,
): Promise<Result> {
  let measuring = false;
  const timer = setInterval(() => {
    if (measuring) return;
    measuring = true;
    directoryBytes(directory)
      .then((bytes) => observer.progress(bytes))
      .finally(() => {
        measuring = false;
      });
  }, progressIntervalMs);
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/** Returns the size of a directory. A file that npm moves meanwhile counts as empty. */
async function directoryBytes(directory: string): Promise<number> {
  let bytes = 0;
  for (const entry of await readdir(directory, { withFileTypes: true }).catch(() => [])) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) bytes += await directoryBytes(path);
    else bytes += (await stat(path).catch(() => undefined))?.size ?? 0;
  }
  return bytes;
}
