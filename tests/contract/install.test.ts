// What the default install brings: the CPU back-end of the engine alone, no install scripts, exact versions.
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import {
  cpSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };

const root = join(import.meta.dir, "..", "..");
const modules = join(root, "node_modules");

function bytesOf(path: string): number {
  const stats = lstatSync(path);
  if (!stats.isDirectory()) return stats.size;
  return readdirSync(path).reduce((sum, name) => sum + bytesOf(join(path, name)), 0);
}

// hardening: S2
test("keeps the engine's packages under 100 MB", () => {
  const own = bytesOf(join(modules, "node-llama-cpp"));
  const platforms = bytesOf(join(modules, "@node-llama-cpp"));
  expect(own + platforms).toBeGreaterThan(10e6);
  expect(own + platforms).toBeLessThan(100e6);
});

// hardening: S2
test("installs only the CPU back-end of this platform by default", () => {
  expect(readdirSync(join(modules, "@node-llama-cpp"))).toEqual([`${process.platform}-${process.arch}`]);
});

// hardening: S1
test("pins every dependency to an exact version without a registry in the lock file", () => {
  const versions = Object.values({ ...packageJson.dependencies, ...packageJson.devDependencies });
  // An older version of a package beside the newest has a name of its own.
  expect(versions.filter((version) => !/^(?:npm:@?[\w/.-]+@)?\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  expect(readFileSync(join(root, "package-lock.json"), "utf8")).not.toContain('"resolved"');
});

/** What the launcher takes for Bun in a clone whose `bun` package has `bytes` in the place of its executable. */
function bunBesidePackage(bytes: number) {
  const clone = realpathSync(mkdtempSync(join(tmpdir(), "headrace-launcher-")));
  try {
    const moved = join(clone, "node_modules", "bun", "bin", "bun.exe");
    mkdirSync(join(moved, ".."), { recursive: true });
    writeFileSync(moved, Buffer.alloc(bytes));
    cpSync(join(root, "bin", "bun.mjs"), join(clone, "bin", "bun.mjs"));
    const code = 'process.stdout.write((await import("./bin/bun.mjs")).bunExecutable())';
    const { stdout, status } = spawnSync("node", ["--input-type=module", "-e", code], { cwd: clone, encoding: "utf8" });
    return { status, found: stdout === moved };
  } finally {
    rmSync(clone, { recursive: true });
  }
}

test("finds bun's executable where its install script moved it, and not the placeholder text", () => {
  expect(bunBesidePackage(2_000_000)).toEqual({ status: 0, found: true });
  expect(bunBesidePackage(450)).toEqual({ status: 1, found: false });
});
