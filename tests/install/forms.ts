// How each form in which Headrace is published is installed into a small system, and removed from it.
import { chmodSync, copyFileSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clonePackages, npmsFolder } from "../../scripts/test-programs.mjs";
import type { SmallSystem } from "./small-system.ts";
import type { Walk } from "./walk.ts";

export interface Installed {
  walk: Omit<Walk, "system">;
  /** Bytes that were fetched for it. */
  fetchedBytes: number;
  /** Puts another version in its place. */
  upgrade(file: string): void;
  remove(): void;
}

const checkout = join(import.meta.dir, "..", "..");

/** Puts a copy of the checkout into a system, with nothing installed, to be started by `npm start` without a network. */
export function putClone(system: SmallSystem): Omit<Walk, "system"> {
  const clone = join(system.root, "root", "headrace");
  system.run(["mkdir", clone]);
  const leftOut = ["node_modules", "dist", ".git", ".headrace"].map((name) => `--exclude=./${name}`);
  system.run(["sh", "-ec", 'tar -c "$@" . | tar -x -C "$0"', clone, "-C", checkout, ...leftOut]);
  system.run(["cp", "-r", clonePackages, join(system.root, "npm-cache")]);
  return {
    // The script of package.json says `serve` itself.
    command: ["/bin/sh", "-ec", 'cd /root/headrace; shift; exec npm start -- "$@"', "npm"],
    dataDir: "/root/data",
    byNpm: true,
    env: { npm_config_cache: "/npm-cache", npm_config_offline: "true" },
  };
}

/** Puts Node 20 into a system, with the npm that its makers put beside it. */
export function putNode20(system: SmallSystem): void {
  const modules = join(npmsFolder, "node_modules");
  system.run([
    "cp",
    join(modules, `node-linux-${process.arch}`, "bin", "node"),
    join(system.root, "usr", "bin", "node"),
  ]);
  putNpm(system, join(modules, "npm-10.8.2"));
}

const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];

/** Puts npm, by default that of this machine, where the makers of Node put it. Returns its paths in the system. */
function putNpm(system: SmallSystem, from = join(system.run(["npm", "root", "--global"]).trim(), "npm")): string[] {
  const modules = join(system.root, "usr", "lib", "node_modules");
  system.run(["mkdir", "-p", modules]);
  system.run(["cp", "-r", from, join(modules, "npm")]);
  const links = ["npm", "npx"].map((name) => {
    const link = join(system.root, "usr", "bin", name);
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, link);
    return link;
  });
  return [join(modules, "npm"), ...links];
}

/** By npm within the system, without a network: what it would fetch is put into its cache before. */
export function installPackage(system: SmallSystem, tarball: string): Installed {
  const npmItself = putNpm(system);
  const registry = system.run(["npm", "config", "get", "registry"]).trim();
  const cache = join(system.root, "npm-cache");
  const elsewhere = mkdtempSync(join(tmpdir(), "headrace-npm-"));
  system.run(["npm", "install", "--global", "--prefix", elsewhere, ...quiet, "--cache", cache, tarball]);
  rmSync(elsewhere, { recursive: true });
  const fetchedBytes = bytesOf(system, join(cache, "_cacache", "content-v2"));
  const offline = ["--offline", "--cache", "/npm-cache", "--registry", registry];
  const npm = (command: string, what: string) =>
    system.inside(["npm", command, "--global", ...quiet, ...offline, what]);
  const install = (from: string) => {
    copyFileSync(from, join(system.root, "headrace.tgz"));
    npm("install", "/headrace.tgz");
    rmSync(join(system.root, "headrace.tgz"));
  };
  install(tarball);
  return {
    walk: { command: ["/usr/bin/headrace"], dataDir: "/root/data" },
    fetchedBytes,
    upgrade: install,
    remove() {
      npm("uninstall", "headrace");
      for (const path of [cache, ...npmItself]) rmSync(path, { recursive: true });
    },
  };
}

export function installExecutable(system: SmallSystem, executable: string): Installed {
  const file = join(system.root, "usr", "bin", "headrace");
  const put = (from: string) => {
    copyFileSync(from, file);
    chmodSync(file, 0o755);
  };
  put(executable);
  return {
    walk: { command: ["/usr/bin/headrace"], dataDir: "/root/data" },
    fetchedBytes: Bun.file(file).size,
    upgrade: put,
    remove: () => rmSync(file),
  };
}

export function installDebianPackage(system: SmallSystem, file: string): Installed {
  const install = (from: string) => {
    copyFileSync(from, join(system.root, "headrace.deb"));
    system.inside(["dpkg", "--install", "/headrace.deb"]);
    rmSync(join(system.root, "headrace.deb"));
  };
  install(file);
  const [user, group] = ["--user", "--group"].map((which) => system.inside(["id", which, "headrace"]).trim());
  const dataDir = "/var/lib/headrace";
  return {
    walk: { command: ["/usr/bin/headrace"], user: `${user}:${group}`, dataDir, env: { HOME: dataDir } },
    fetchedBytes: Bun.file(file).size,
    upgrade: install,
    remove() {
      system.inside(["dpkg", "--remove", "headrace"]);
    },
  };
}

/** On disk, files that are linked counted once. */
export function bytesOf(system: SmallSystem, path: string): number {
  return Number(system.run(["du", "-sB1", path]).split("\t")[0]);
}
