// How each form in which Headrace is published is installed into a small system, and removed from it.
import { chmodSync, copyFileSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
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

const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];

/** What the makers of Node put beside it, and Debian does not: that of this machine. Gives where it is in the system. */
function putNpm(system: SmallSystem): string[] {
  const modules = join(system.root, "usr", "lib", "node_modules");
  system.run(["mkdir", "-p", modules]);
  system.run(["cp", "-r", join(system.run(["npm", "root", "--global"]).trim(), "npm"), modules]);
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
