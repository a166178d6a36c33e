// Tests the installation of back-ends with the real npm, from a registry on this machine.
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { runCommand } from "../../../tests/fixtures/command-line.ts";
import { type LibraryKind, libraryPackage, NpmRegistry } from "../../../tests/fixtures/npm-registry.ts";
import { deviceSigns } from "./device-signs.ts";
import {
  availableBackends,
  backendPackages,
  currentPlatform,
  defaultInstallComputes,
  installedEngine,
  libraryPathIn,
  libraryVersion,
  listBackends,
  readRecord,
  recordName,
  removeBackend,
} from "./engine-backends.ts";
import { type InstallRequest, type InstallResult, installBackend } from "./engine-install.ts";
import { SetupError } from "./setup-error.ts";

// The back-ends for GPUs exist only for x64 Linux and Windows. On other platforms there is nothing to install.
const withGpu = test.skipIf(!availableBackends(currentPlatform()).includes("vulkan"));
const npmTimeoutMs = 60_000;

let registry: NpmRegistry;
let home: string;
let dataDir: string;

beforeEach(async () => {
  registry = new NpmRegistry();
  home = await mkdtemp(join(tmpdir(), "headrace-install-"));
  dataDir = join(home, "data");
});

afterEach(async () => {
  await registry.stop();
  await rm(home, { recursive: true, force: true });
});

async function publish(kind: LibraryKind): Promise<void> {
  await registry.publish(libraryPackage(libraryVersion, kind));
  for (const version of ["1.0.0", "1.1.0"]) await registry.publish({ name: "library-part", version, files: {} });
  await registry.publish({ name: "@node-llama-cpp/other-platform", version: libraryVersion, files: {} });
  for (const { name } of backendPackages("vulkan", currentPlatform()).packages) {
    await registry.publish({ name, version: libraryVersion, files: { "bins/binary": "x".repeat(1000) } });
  }
}

interface Watch extends Partial<InstallRequest> {
  onPlanned?: (bytes: number) => void;
  onChecking?: () => void;
}

function install(watch: Watch = {}): Promise<InstallResult> {
  const { onPlanned, onChecking, ...parts } = watch;
  const tools = ["npm", "node"].map((name) => dirname(Bun.which(name) ?? "/"));
  const env = {
    PATH: [...tools, "/usr/bin", "/bin"].join(":"),
    HOME: home,
    npm_config_cache: join(home, "cache"),
    npm_config_registry: registry.url,
  };
  const signal = new AbortController().signal;
  return installBackend(
    { name: "vulkan", dataDir, env, signal, lockFile: join(home, "none"), ...parts },
    {
      planned: async ({ bytes }) => onPlanned?.(bytes),
      progress: () => {},
      checking: () => onChecking?.(),
    },
  );
}

async function failureOf(work: Promise<unknown>): Promise<SetupError> {
  const error = await work.catch((reason: unknown) => reason);
  if (!(error instanceof SetupError)) throw new Error(`Expected a SetupError, got ${String(error)}`);
  return error;
}

/** Lists the directory of back-ends, including hidden leftovers. */
async function left(): Promise<string[]> {
  return (await readdir(join(dataDir, "engine")).catch((): string[] => [])).sort();
}

describe("an engine install", () => {
  withGpu(
    "tells device and download size before an install, and fetches nothing without consent",
    async () => {
      await publish("device");
      const tools = ["npm", "node"].map((name) => dirname(Bun.which(name) ?? "/"));
      const env = {
        PATH: [...tools, "/usr/bin", "/bin"].join(":"),
        HOME: home,
        npm_config_cache: join(home, "cache"),
        npm_config_registry: registry.url,
      };
      const command = ["engine", "install", "vulkan", "--data-dir", dataDir];
      const unasked = await runCommand(command, { env });
      const declined = await runCommand(command, { env, isTTY: true, answers: ["n"] });
      expect([unasked.code, declined.code]).toEqual([2, 1]);
      for (const { stderr } of [unasked, declined]) {
        expect(stderr).toMatch(/A device for vulkan seems to be here|No device for vulkan is to be seen/);
        expect(stderr).toMatch(/Fetch @node-llama-cpp\/\S+, @node-llama-cpp\/\S+ and the library, about 52.0 MB/);
        expect(stderr).not.toContain("cannot be undone");
      }
      expect(unasked.stderr).toContain("add --yes");
      expect(registry.requests.filter((path) => path.endsWith(".tgz"))).toEqual([]);
      expect(await left()).toEqual([]);
    },
    npmTimeoutMs,
  );

  withGpu(
    "installs exactly the named binaries without running scripts, and uses them from then on",
    async () => {
      await publish("device");
      let plannedBytes = 0;
      const { record, alreadyThere } = await install({
        onPlanned: (bytes) => {
          plannedBytes = bytes;
        },
      });
      expect([record.devices, alreadyThere]).toEqual([["Test GPU"], false]);
      // The size is that of two binaries of 1 MB each, as the registry reports, and our own figure for the library.
      expect(plannedBytes).toBe(52_000_000);
      const directory = join(dataDir, "engine", "vulkan");
      const scoped = await readdir(join(directory, "node_modules", "@node-llama-cpp"));
      expect(scoped.sort()).toEqual(["linux-x64", "linux-x64-vulkan"]);
      expect(await stat(join(libraryPathIn(directory), "script-ran")).catch(() => "absent")).toBe("absent");
      expect(await installedEngine(dataDir)).toEqual({
        backend: "vulkan",
        libraryPath: libraryPathIn(directory),
        gpu: "vulkan",
      });
      expect(await left()).toEqual(["vulkan"]);
    },
    npmTimeoutMs,
  );

  withGpu(
    "keeps an install without a device, reports that, and computes on the CPU",
    async () => {
      await publish("no device");
      const { record } = await install();
      expect(record.devices).toEqual([]);
      expect((await installedEngine(dataDir))?.gpu).toBe(false);
    },
    npmTimeoutMs,
  );

  withGpu(
    "only looks for devices when an install is repeated, and fetches nothing",
    async () => {
      await publish("no device");
      await install();
      const library = join(libraryPathIn(join(dataDir, "engine", "vulkan")), "dist", "index.js");
      const withDevice = libraryPackage(libraryVersion, "device").files["dist/index.js"] ?? "";
      await writeFile(library, withDevice);
      registry.requests.length = 0;
      const { record, alreadyThere } = await install();
      expect([record.devices, alreadyThere, registry.requests]).toEqual([["Test GPU"], true, []]);
      expect((await installedEngine(dataDir))?.gpu).toBe("vulkan");
    },
    npmTimeoutMs,
  );

  withGpu(
    "installs the versions of the gateway's lock file, not the newest ones",
    async () => {
      await publish("device");
      const lockFile = join(home, "package-lock.json");
      const entry = { version: "1.0.0", license: "MIT" };
      const binary = { version: libraryVersion, cpu: ["none"], optional: true };
      await writeFile(
        lockFile,
        JSON.stringify({
          packages: {
            "": { name: "headrace" },
            "node_modules/library-part": entry,
            "node_modules/@node-llama-cpp/linux-x64-vulkan": binary,
          },
        }),
      );
      await install({ lockFile });
      const modules = join(dataDir, "engine", "vulkan", "node_modules");
      const part: unknown = JSON.parse(await readFile(join(modules, "library-part", "package.json"), "utf8"));
      expect(part).toMatchObject({ version: "1.0.0" });
      expect(existsSync(join(modules, "@node-llama-cpp", "linux-x64-vulkan", "package.json"))).toBe(true);
    },
    npmTimeoutMs,
  );

  withGpu(
    "replaces an install of another version, which is not used before that",
    async () => {
      await publish("device");
      await install();
      const directory = join(dataDir, "engine", "vulkan");
      const record = await readRecord(directory);
      await writeFile(join(directory, recordName), JSON.stringify({ ...record, version: "3.0.0" }));
      expect(await installedEngine(dataDir)).toBeUndefined();
      expect((await install()).alreadyThere).toBe(false);
      expect((await installedEngine(dataDir))?.backend).toBe("vulkan");
      expect(await left()).toEqual(["vulkan"]);
    },
    npmTimeoutMs,
  );
});

describe("leftovers of an install", () => {
  withGpu(
    "leaves nothing if the library does not start, and reports the reason",
    async () => {
      await publish("broken");
      expect((await failureOf(install())).message).toContain("not even on the CPU: libstdc++ is too old");
      expect(await left()).toEqual([]);
    },
    npmTimeoutMs,
  );

  withGpu(
    "leaves nothing if the registry cannot be reached",
    async () => {
      await registry.stop();
      const error = await failureOf(install());
      expect([error.kind, error.message]).toEqual([
        "network",
        "npm cannot reach its registry (ECONNREFUSED). Are you offline, or is a proxy missing?",
      ]);
      expect(await left()).toEqual([]);
    },
    npmTimeoutMs,
  );

  withGpu(
    "leaves nothing if the registry lacks a package",
    async () => {
      await publish("device");
      await registry.stop();
      registry = new NpmRegistry();
      const { message } = await failureOf(install());
      expect(message).toContain("npm's registry has no @node-llama-cpp/linux-x64");
      expect(await left()).toEqual([]);
    },
    npmTimeoutMs,
  );

  withGpu(
    "leaves nothing if it is interrupted while npm works",
    async () => {
      await publish("device");
      registry.holdsTarballs = true;
      const abort = new AbortController();
      const work = install({ signal: abort.signal }).catch((error: Error) => error.message);
      await registry.tarballAsked;
      abort.abort(new Error("stop"));
      expect(await work).toBe("stop");
      expect(await left()).toEqual([]);
    },
    npmTimeoutMs,
  );

  withGpu(
    "removes the remains of a killed install",
    async () => {
      await publish("device");
      const ended = Bun.spawn(["true"]);
      await ended.exited;
      await mkdir(join(dataDir, "engine", `.installing-cuda-${ended.pid}`), { recursive: true });
      await install();
      expect(await left()).toEqual(["vulkan"]);
    },
    npmTimeoutMs,
  );
});

test("tells how to get npm on a machine without it", async () => {
  const name = availableBackends(currentPlatform())[0] ?? "cpu";
  expect((await failureOf(install({ name, env: { PATH: home } }))).message).toContain("npm was not found on PATH");
});

describe("the name of a back-end", () => {
  test("refuses an unknown back-end and names the known ones", () => {
    expect(() => backendPackages("metal", "linux-x64")).toThrow("There are: cuda, vulkan, cpu.");
  });

  test("refuses a back-end that the platform lacks and names the available ones", () => {
    expect(() => backendPackages("cuda", "linux-arm64")).toThrow("Available for linux-arm64: cpu.");
    expect(() => backendPackages("cuda", "darwin-arm64")).toThrow("Metal");
    expect(() => backendPackages("cpu", "sunos-x64")).toThrow("none for sunos-x64 at all");
  });
});

test("removes an install entirely, and reports if there was none", async () => {
  const directory = join(dataDir, "engine", "cuda");
  await mkdir(join(directory, "node_modules"), { recursive: true });
  await writeFile(
    join(directory, recordName),
    JSON.stringify({ backend: "cuda", version: libraryVersion, bytes: 1, installedAt: 1, devices: ["GPU"] }),
  );
  expect(await installedEngine(dataDir)).toMatchObject({ backend: "cuda", gpu: "cuda" });
  expect(await removeBackend(dataDir, "cuda")).toBe(true);
  expect(await removeBackend(dataDir, "cuda")).toBe(false);
  expect(await left()).toEqual([]);
  expect(await listBackends(dataDir)).toEqual([]);
  await expect(removeBackend(dataDir, "../models")).rejects.toThrow("is no back-end");
});

test("prefers an install with a device to a preferred one without", async () => {
  for (const [backend, devices] of [
    ["cuda", []],
    ["vulkan", ["GPU"]],
  ] as const) {
    const directory = join(dataDir, "engine", backend);
    await mkdir(directory, { recursive: true });
    const record = { backend, version: libraryVersion, bytes: 1, installedAt: 1, devices };
    await writeFile(join(directory, recordName), JSON.stringify(record));
  }
  expect(await installedEngine(dataDir)).toMatchObject({ backend: "vulkan", gpu: "vulkan" });
});

test.skipIf(currentPlatform() !== "linux-x64")("reports whether the default install can compute on a platform", () => {
  expect(defaultInstallComputes("linux-x64")).toBe(true);
  expect(defaultInstallComputes("linux-arm64")).toBe(false);
});

test("detects a device by its driver's files, and lists the searched paths if none exists", async () => {
  const at = (...parts: string[]) => join(home, ...parts);
  const cuda = () => deviceSigns("cuda", "linux", home);
  const vulkan = () => deviceSigns("vulkan", "linux", home);
  expect(await cuda()).toEqual({ seen: undefined, searched: ["/dev/nvidiactl", "/dev/dxg"] });
  expect((await vulkan()).seen).toBeUndefined();
  await mkdir(at("dev", "dri"), { recursive: true });
  await writeFile(at("dev", "dri", "card0"), "");
  expect((await vulkan()).seen).toBeUndefined();
  await writeFile(at("dev", "dri", "renderD128"), "");
  expect((await vulkan()).seen).toBe("/dev/dri/renderD*");
  expect((await cuda()).seen).toBeUndefined();
  await writeFile(at("dev", "nvidiactl"), "");
  expect((await cuda()).seen).toBe("/dev/nvidiactl");
  expect(await deviceSigns("cpu", "linux", home)).toEqual({ seen: undefined, searched: [] });
});
