// Tests the output of `headrace engine`.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../../tests/fixtures/command-line.ts";
import { currentPlatform, libraryVersion } from "../../engines/llama/engine-backends.ts";

const onLinuxX64 = test.skipIf(currentPlatform() !== "linux-x64");
let dataDir: string;

beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "headrace-cli-engine-"));
});

afterEach(() => rm(dataDir, { recursive: true, force: true }));

async function pretendInstalled(backend: string, version: string, devices: string[]): Promise<void> {
  const directory = join(dataDir, "engine", backend);
  await mkdir(directory, { recursive: true });
  const record = { backend, version, bytes: 570_000_000, installedAt: 1, devices };
  await writeFile(join(directory, "engine.json"), JSON.stringify(record));
}

const engine = (...args: string[]) => runCommand(["engine", ...args, "--data-dir", dataDir]);

onLinuxX64("lists the installable back-ends on a fresh machine", async () => {
  expect(await engine("list")).toEqual({
    code: 0,
    stderr: "",
    stdout: [
      "BACK-END  STATUS         SIZE  DEVICES",
      "cuda      not installed  -     -",
      "vulkan    not installed  -     -",
      "cpu       in use         -     CPU, in the default install",
      "",
    ].join("\n"),
  });
});

onLinuxX64("lists the engine in use with its device, and outdated back-ends", async () => {
  await pretendInstalled("cuda", "3.0.0", ["Old GPU"]);
  await pretendInstalled("vulkan", libraryVersion, ["Radeon"]);
  const { stdout, stderr } = await engine("list");
  expect(stdout).toMatch(/cuda +outdated +570 MB +Old GPU/);
  expect(stdout).toMatch(/vulkan +in use +570 MB +Radeon/);
  expect(stderr).toContain(`this Headrace needs ${libraryVersion}: headrace engine install cuda`);
});

test("reports the removal of a back-end, and a second one as not installed", async () => {
  await pretendInstalled("vulkan", libraryVersion, []);
  expect((await engine("remove", "vulkan")).stdout).toContain("Back-end vulkan is removed.");
  const again = await engine("remove", "vulkan");
  expect([again.code, again.stderr]).toEqual([1, "error: Back-end vulkan is not installed.\n"]);
});

test("refuses an unknown back-end as a usage error", async () => {
  expect((await engine("install", "metal")).code).toBe(2);
  expect((await engine("remove", "metal")).code).toBe(2);
});
