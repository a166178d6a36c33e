// What the default install brings: the CPU back-end of the engine alone, no install scripts, exact versions.
import { expect, test } from "bun:test";
import { lstatSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };

const root = join(import.meta.dir, "..", "..");
const modules = join(root, "node_modules");

function bytesOf(path: string): number {
  const stats = lstatSync(path);
  if (!stats.isDirectory()) return stats.size;
  return readdirSync(path).reduce((sum, name) => sum + bytesOf(join(path, name)), 0);
}

test("the engine's packages come to less than 100 MB", () => {
  const own = bytesOf(join(modules, "node-llama-cpp"));
  const platforms = bytesOf(join(modules, "@node-llama-cpp"));
  expect(own + platforms).toBeGreaterThan(10e6);
  expect(own + platforms).toBeLessThan(100e6);
});

test("no GPU back-end is among them", () => {
  for (const name of readdirSync(join(modules, "@node-llama-cpp"))) {
    if (/cuda|vulkan/.test(name)) expect(bytesOf(join(modules, "@node-llama-cpp", name))).toBeLessThan(100_000);
  }
});

test("every dependency has an exact version, and the lock file names no registry", () => {
  const versions = Object.values({ ...packageJson.dependencies, ...packageJson.devDependencies });
  expect(versions.filter((version) => !/^\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  expect(readFileSync(join(root, "package-lock.json"), "utf8")).not.toContain('"resolved"');
});
