// Executables that cannot run where the tests do, as far as an emulator has them.
import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { makeExecutable } from "../../scripts/release/executables.ts";
import { makePackage } from "../../scripts/release/package.ts";
import { long } from "../support/long.ts";

test.if(long)(
  "unpacks the ARM64 executable and prints its version under qemu",
  async () => {
    const release = mkdtempSync(join(tmpdir(), "headrace-arm64-"));
    try {
      await makePackage(release);
      const executable = await makeExecutable("linux-arm64", release);
      const libraries = join(release, "libraries");
      const include = "--include=libc6,libgcc-s1,libstdc++6";
      const made = [
        "mmdebstrap",
        "--quiet",
        "--architectures=arm64",
        "--variant=extract",
        include,
        "bookworm",
        libraries,
      ];
      expect(Bun.spawnSync(made, { stdout: "ignore" }).exitCode).toBe(0);
      const start = (args: readonly string[], env: Record<string, string> = {}) =>
        Bun.spawnSync(["qemu-aarch64-static", "-L", libraries, executable, ...args], {
          env: { PATH: "/usr/bin:/bin", HOME: release, ...env },
        }).stdout.toString();
      // The emulator runs one program: what the executable becomes once it is unpacked is started by hand.
      start([]);
      const cache = join(release, ".cache", "headrace");
      const [unpacked = ""] = readdirSync(cache);
      const program = join(cache, unpacked, "app", "main.js");
      expect(start([program, "--version"], { BUN_BE_BUN: "1" })).toBe(`${packageJson.version}\n`);
    } finally {
      rmSync(release, { recursive: true });
    }
  },
  300_000,
);
