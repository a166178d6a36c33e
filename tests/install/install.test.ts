// Each form in which Headrace is published, in a small Debian with nothing else: installed, asked, started again, removed.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeDebianPackage } from "../../scripts/release/debian.ts";
import { makeExecutable } from "../../scripts/release/executables.ts";
import { makePackage } from "../../scripts/release/package.ts";
import { SmallSystem } from "./small-system.ts";
import type { Walked } from "./walk.ts";

const release = mkdtempSync(join(tmpdir(), "headrace-release-"));
let tarball = "";

beforeAll(async () => {
  tarball = await makePackage(release);
});
afterAll(() => rmSync(release, { recursive: true }));

const walkedWell = { answer: expect.stringContaining("tiny demo model"), keptKey: true, keptRequests: 1, left: 0 };

/** What of it must be as it is named, without the figures. */
function outcome({ answer, keptKey, keptRequests, left }: Walked) {
  return { answer, keptKey, keptRequests, left };
}

function megabytesOf(system: SmallSystem, path: string): number {
  return Number(system.run(["du", "-sm", join(system.root, path)]).split("\t")[0]);
}

test("the package runs with Node alone and without a network, within 80 MB fetched and 200 MB on disk, and leaves its data alone", async () => {
  using system = new SmallSystem();
  const node = system.run(["node", "-p", "process.execPath"]).trim();
  copyFileSync(node, join(system.root, "usr", "bin", "node"));
  const prefix = ["--global", "--prefix", join(system.root, "opt")];
  const cache = join(release, "npm-cache");
  const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--cache", cache];
  system.run(["npm", "install", ...prefix, ...quiet, tarball]);
  expect(megabytesOf(system, "opt")).toBeLessThan(200);
  const fetched = system.run(["du", "-sm", join(cache, "_cacache", "content-v2")]).split("\t")[0];
  expect(Number(fetched)).toBeLessThan(80);
  expect(system.inside(["/opt/bin/headrace", "--version"])).toMatch(/^\d+\.\d+\.\d+\n$/);

  const walked = await system.walk({ command: ["/opt/bin/headrace"], dataDir: "/root/data" });
  expect(outcome(walked)).toEqual(walkedWell);
  system.run(["npm", "uninstall", ...prefix, ...quiet, "headrace"]);
  rmSync(join(system.root, "usr", "bin", "node"));
  // What a prefix of npm has in it by itself.
  const ofNpm = ["opt/bin", "opt/lib"];
  expect(system.added().filter((path) => !ofNpm.includes(path))).toEqual(["root/data"]);
});

test("the executable runs where nothing is installed, unpacks itself once for all starts of a moment, and leaves its data and its cache", async () => {
  using system = new SmallSystem();
  const file = join(system.root, "usr", "bin", "headrace");
  copyFileSync(await makeExecutable("linux-x64", release), file);
  chmodSync(file, 0o755);
  const cache = join(system.root, "root", ".cache", "headrace");
  const starts = Array.from({ length: 4 }, () =>
    Bun.spawn(system.commandInside(["/usr/bin/headrace", "--version"]), { stdout: "pipe" }),
  );
  const versions = await Promise.all(starts.map(({ stdout }) => new Response(stdout).text()));
  expect(new Set(versions).size).toBe(1);
  expect(versions[0]).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect(system.run(["ls", "-A", cache])).toMatch(/^[0-9a-f]{64}\n$/);

  const walked = await system.walk({ command: ["/usr/bin/headrace"], dataDir: "/root/data" });
  expect(outcome(walked)).toEqual(walkedWell);
  rmSync(file);
  expect(system.added()).toEqual(["root/.cache", "root/data"]);
});

test("the executable keeps the files of two versions", async () => {
  using system = new SmallSystem();
  const cache = join(system.root, "root", ".cache", "headrace");
  const older = ["a", "b", "c"].map((letter) => join(cache, letter.repeat(64)));
  for (const [age, path] of older.entries()) {
    system.run(["mkdir", "-p", path]);
    system.run(["touch", "-d", `${age + 1} days ago`, path]);
  }
  system.run(["mkdir", join(cache, ".unpacking-4000000")]);
  const file = join(system.root, "headrace");
  copyFileSync(await makeExecutable("linux-x64", release), file);
  system.inside(["/headrace", "--version"]);
  expect(older.map((path) => existsSync(path))).toEqual([true, false, false]);
  expect(readdirSync(cache)).toHaveLength(2);
});

test("the Debian package runs as a user of its own, keeps data when it is removed, and takes them when it is purged", async () => {
  using system = new SmallSystem();
  copyFileSync(makeDebianPackage(release), join(system.root, "headrace.deb"));
  system.inside(["dpkg", "--install", "/headrace.deb"]);
  rmSync(join(system.root, "headrace.deb"));
  const user = system.inside(["id", "--user", "headrace"]).trim();
  expect(user).not.toBe("0");

  const walked = await system.walk({
    command: ["/usr/bin/headrace"],
    user: `${user}:${system.inside(["id", "--group", "headrace"]).trim()}`,
    dataDir: "/var/lib/headrace",
    env: { HOME: "/var/lib/headrace" },
  });
  expect(outcome(walked)).toEqual(walkedWell);
  const ofDpkg = (path: string) => /^var\/(?:lib\/dpkg\/|log\/dpkg\.log$)/.test(path);
  const ofUsers = (path: string) => /^etc\/(?:passwd|group|shadow|gshadow|subuid|subgid)-$/.test(path);
  const left = () => system.added().filter((path) => !ofDpkg(path) && !ofUsers(path));
  system.inside(["dpkg", "--remove", "headrace"]);
  expect(left()).toEqual(["etc/headrace", "var/lib/headrace"]);
  system.inside(["dpkg", "--purge", "headrace"]);
  expect(left()).toEqual([]);
});
