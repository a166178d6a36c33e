// How each form in which Headrace is published is installed into a small system, and removed from it.
import { chmodSync, copyFileSync, mkdtempSync, rmSync } from "node:fs";
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

/** By npm, with the Node of this machine and a cache of its own. */
export function installPackage(system: SmallSystem, tarball: string): Installed {
  const node = join(system.root, "usr", "bin", "node");
  copyFileSync(system.run(["node", "-p", "process.execPath"]).trim(), node);
  const cache = mkdtempSync(join(tmpdir(), "headrace-npm-"));
  const npm = (command: string, what: string) => {
    const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--cache", cache];
    system.run(["npm", command, "--global", "--prefix", join(system.root, "opt"), ...quiet, what]);
  };
  npm("install", tarball);
  const fetchedBytes = bytesOf(system, join(cache, "_cacache", "content-v2"));
  return {
    walk: { command: ["/opt/bin/headrace"], dataDir: "/root/data" },
    fetchedBytes,
    upgrade: (next) => npm("install", next),
    remove() {
      npm("uninstall", "headrace");
      rmSync(cache, { recursive: true, force: true });
      rmSync(node);
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
