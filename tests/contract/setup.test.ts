// What a clone says when npm cannot install its packages: each cause with its own remedy.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NpmRegistry } from "../fixtures/npm-registry.ts";

const root = join(import.meta.dir, "..", "..");
const registry = new NpmRegistry();
const part = { version: "1.0.0" };
let clone: string;

beforeAll(() => registry.publish({ name: "part", version: "1.0.0", files: { "index.js": "" } }));
afterAll(() => registry.stop());
beforeEach(() => {
  clone = mkdtempSync(join(tmpdir(), "headrace-setup-"));
  for (const path of ["bin", "scripts/setup.mjs", "scripts/setup-remedy.mjs"])
    cpSync(join(root, path), join(clone, path), { recursive: true });
  mkdirSync(join(clone, "src"));
  writeFileSync(join(clone, "src", "main.ts"), "");
});
afterEach(() => rmSync(clone, { recursive: true }));

/** Starts the clone, whose lock file has these packages beside its own entry; returns what is said on standard error. */
async function setUp(
  packages: Record<string, { version: string; integrity?: string }>,
  env: Record<string, string> = {},
): Promise<string> {
  const { version } = packages["node_modules/part"] ?? part;
  const own = { name: "clone", version: "1.0.0", dependencies: { part: version } };
  writeFileSync(join(clone, "package.json"), JSON.stringify(own));
  const lock = { ...own, lockfileVersion: 3, requires: true, packages: { "": own, ...packages } };
  writeFileSync(join(clone, "package-lock.json"), JSON.stringify(lock));
  const child = Bun.spawn(["node", join(clone, "bin", "headrace.mjs"), "--version"], {
    env: {
      PATH: process.env["PATH"],
      npm_config_registry: registry.url,
      npm_config_cache: join(clone, "cache"),
      npm_config_userconfig: join(clone, "npmrc"),
      npm_config_fetch_retries: "0",
      ...env,
    },
    stdout: "ignore",
    stderr: "pipe",
  });
  const said = await new Response(child.stderr).text();
  expect(await child.exited).toBe(1);
  return said;
}

test("installs nothing again if all packages are there and the last start needed fewer of them", async () => {
  const own = { name: "clone", version: "1.0.0", devDependencies: { part: part.version } };
  const packages = { "node_modules/part": { ...part, dev: true } };
  const lock = JSON.stringify({ ...own, lockfileVersion: 3, requires: true, packages: { "": own, ...packages } });
  writeFileSync(join(clone, "package-lock.json"), lock);
  mkdirSync(join(clone, "node_modules", "part"), { recursive: true });
  writeFileSync(join(clone, "node_modules", ".package-lock.json"), JSON.stringify({ packages }));
  const hash = createHash("sha256").update(lock).digest("hex");
  writeFileSync(join(clone, "node_modules", ".headrace-setup"), `${hash} run`);
  const script = `import("./scripts/setup.mjs").then((setup) => setup.ensureDependencies({ dev: true }))`;
  const child = Bun.spawn(["node", "-e", script], { cwd: clone, stdout: "ignore", stderr: "pipe" });
  expect(await new Response(child.stderr).text()).toBe("");
  expect(await child.exited).toBe(0);
});

test("reports a lock file out of step as such, not as a network fault", async () => {
  const said = await setUp({});
  expect(said).toContain("Missing: part@1.0.0 from lock file");
  expect(said).toMatch(/npm \d+\.\d+\.\d+ refuses package\.json or package-lock\.json; the network is not the cause\./);
});

test("names the address of an unreachable registry", async () => {
  const nowhere = "http://127.0.0.1:9/";
  const said = await setUp({ "node_modules/part": part }, { npm_config_registry: nowhere });
  expect(said).toContain(`The registry ${nowhere} could not be asked (ECONNREFUSED).`);
});

test("names a registry that lacks a package of the lock file", async () => {
  const said = await setUp({ "node_modules/part": { version: "2.0.0" } });
  expect(said).toContain(`The registry ${registry.url} refuses a package of the lock file or lacks it.`);
});

test("reports a package with another checksum", async () => {
  const integrity = `sha512-${Buffer.alloc(64).toString("base64")}`;
  expect(await setUp({ "node_modules/part": { ...part, integrity } })).toContain(
    "A package does not have the checksum of the lock file.",
  );
});

test("says where to get npm on a machine without it", async () => {
  const nodeAlone = join(clone, "path");
  mkdirSync(nodeAlone);
  cpSync(Bun.which("node") ?? "", join(nodeAlone, "node"));
  expect(await setUp({ "node_modules/part": part }, { PATH: nodeAlone })).toContain("npm is not on the PATH.");
});

test("names the required version for an outdated npm", async () => {
  const old = join(clone, "path");
  mkdirSync(old);
  writeFileSync(join(old, "npm"), '#!/bin/sh\n[ "$1" = --version ] && echo 6.14.18 && exit\nexit 1\n');
  chmodSync(join(old, "npm"), 0o755);
  expect(await setUp({ "node_modules/part": part }, { PATH: `${old}:${process.env["PATH"]}` })).toContain(
    "npm 6.14.18 is too old for the lock file.",
  );
});
