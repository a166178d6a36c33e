// The llama.cpp back-ends that can be installed separately: which exist, which are installed, and which one to use.
import { readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import packageJson from "../../../package.json" with { type: "json" };
import { packageDirectory } from "../../installation/paths.ts";
import { SetupError } from "./setup-error.ts";

export const backends = ["cuda", "vulkan", "cpu"] as const;
export type Backend = (typeof backends)[number];

/** The exact version of node-llama-cpp that Headrace uses. The library and its binaries must have the same version. */
export const libraryVersion: string = packageJson.dependencies["node-llama-cpp"];

export interface BackendPackage {
  name: string;
  /** The unpacked size if the registry does not report it. Rounded from version 3.22. */
  approximateBytes: number;
}

/** The unpacked size of the library with its dependencies, without binaries. */
export const libraryBytes = 50_000_000;

const scope = "@node-llama-cpp";
const pack = (name: string, megabytes: number): BackendPackage => ({
  name: `${scope}/${name}`,
  approximateBytes: megabytes * 1_000_000,
});

// A GPU back-end includes the CPU package, which is used while no GPU is available.
const packages: Readonly<Record<string, Partial<Record<Backend, readonly BackendPackage[]>>>> = {
  "linux-x64": {
    cuda: [pack("linux-x64-cuda", 130), pack("linux-x64-cuda-ext", 410), pack("linux-x64", 30)],
    vulkan: [pack("linux-x64-vulkan", 74), pack("linux-x64", 30)],
    cpu: [pack("linux-x64", 30)],
  },
  "linux-arm64": { cpu: [pack("linux-arm64", 20)] },
  "linux-arm": { cpu: [pack("linux-armv7l", 15)] },
  "linux-riscv64": { cpu: [pack("linux-riscv64", 15)] },
  "win32-x64": {
    cuda: [pack("win-x64-cuda", 130), pack("win-x64-cuda-ext", 410), pack("win-x64", 30)],
    vulkan: [pack("win-x64-vulkan", 74), pack("win-x64", 30)],
    cpu: [pack("win-x64", 30)],
  },
  "win32-arm64": { cpu: [pack("win-arm64", 20)] },
};

/** The macOS packages. They come with the default install and are never installed separately. */
const ofMacOs: Readonly<Record<string, string>> = {
  "darwin-arm64": `${scope}/mac-arm64-metal`,
  "darwin-x64": `${scope}/mac-x64`,
};

/** Returns the platform and architecture in Node's names, such as `linux-x64`. */
export function currentPlatform(): string {
  return `${process.platform}-${process.arch}`;
}

/** Returns the back-ends to install for a platform. macOS has none, because its default install includes Metal. */
export function availableBackends(platform: string): Backend[] {
  return backends.filter((backend) => packages[platform]?.[backend] !== undefined);
}

/**
 * Returns the back-end and its packages. Throws a SetupError that lists the available back-ends if this platform has no
 * back-end of the name. The error's kind is `misuse` if no platform has one.
 */
export function backendPackages(name: string, platform: string): { backend: Backend; packages: BackendPackage[] } {
  const backend = backendNamed(name);
  const wanted = packages[platform]?.[backend];
  if (wanted !== undefined) return { backend, packages: [...wanted] };
  const available = availableBackends(platform);
  const reason = platform.startsWith("darwin")
    ? "On macOS the default install already carries the engine, with Metal where the chip has it."
    : available.length > 0
      ? `Available for ${platform}: ${available.join(", ")}.`
      : `There is none for ${platform} at all; models can still be served through an upstream, such as Ollama.`;
  throw new SetupError(`There is no ${backend} back-end for ${platform}. ${reason}`);
}

/** Reports whether the default install has a CPU binary for a platform. */
export function defaultInstallComputes(platform: string): boolean {
  const expected = packages[platform]?.cpu?.[0]?.name ?? ofMacOs[platform];
  return expected !== undefined && packageDirectory(expected) !== undefined;
}

const recordSchema = z.object({
  backend: z.enum(backends),
  version: z.string(),
  /** Unpacked size of everything. */
  bytes: z.number().nonnegative(),
  /** The time of the installation in Unix seconds. */
  installedAt: z.number().int(),
  /** Names of the devices found at the last check. If empty, the CPU is used. */
  devices: z.array(z.string()),
});

/** The record of an install, in `engine.json` beside it. */
export type BackendRecord = z.infer<typeof recordSchema>;

export const recordName = "engine.json";

export function enginesDirectory(dataDir: string): string {
  return join(dataDir, "engine");
}

export function libraryPathIn(directory: string): string {
  return join(directory, "node_modules", "node-llama-cpp");
}

/** Returns all installed back-ends with a readable record, in order of preference. */
export async function listBackends(dataDir: string): Promise<BackendRecord[]> {
  const found = await Promise.all(backends.map((backend) => readRecord(join(enginesDirectory(dataDir), backend))));
  return found.filter((record) => record !== undefined);
}

export async function readRecord(directory: string): Promise<BackendRecord | undefined> {
  try {
    return recordSchema.parse(JSON.parse(await readFile(join(directory, recordName), "utf8")));
  } catch {
    // The record is missing, damaged or of another format. The back-end counts as not installed and can be
    // installed again.
    return undefined;
  }
}

export interface InstalledEngine {
  backend: Backend;
  /** Directory of the `node-llama-cpp` package to load instead of the default install. */
  libraryPath: string;
  /** The argument for the library's `getLlama`. False if no device answered at the last check. */
  gpu: "cuda" | "vulkan" | false;
}

/**
 * Returns the back-end to use: the first in the order cuda, vulkan, cpu that has a device, or else the last,
 * which runs on the CPU. Undefined if none of this version is installed.
 */
export async function installedEngine(dataDir: string): Promise<InstalledEngine | undefined> {
  const current = (await listBackends(dataDir)).filter((record) => record.version === libraryVersion);
  const chosen = current.find((record) => record.devices.length > 0) ?? current.at(-1);
  if (chosen === undefined) return undefined;
  return {
    backend: chosen.backend,
    libraryPath: libraryPathIn(join(enginesDirectory(dataDir), chosen.backend)),
    gpu: chosen.backend === "cpu" || chosen.devices.length === 0 ? false : chosen.backend,
  };
}

/**
 * Removes an installed back-end. Resolves to false if it is not installed. Throws a SetupError (misuse) for an
 * unknown name.
 */
export async function removeBackend(dataDir: string, name: string): Promise<boolean> {
  const backend = backendNamed(name);
  const parent = enginesDirectory(dataDir);
  const names: string[] = await readdir(parent).catch(() => []);
  if (!names.includes(backend)) return false;
  // The directory is renamed first, so that a server that starts now never sees a partly deleted one.
  const doomed = join(parent, `.removing-${backend}-${process.pid}`);
  await rename(join(parent, backend), doomed);
  await rm(doomed, { recursive: true, force: true });
  return true;
}

function backendNamed(name: string): Backend {
  const backend = backends.find((known) => known === name);
  if (backend !== undefined) return backend;
  throw new SetupError(`'${name}' is no back-end. There are: ${backends.join(", ")}.`, { kind: "misuse" });
}
