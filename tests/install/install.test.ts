// Each form in which Headrace is published, in a small Debian with nothing else: installed, asked, started again, upgraded, removed.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { makeDebianPackage } from "../../scripts/release/debian.ts";
import { makeExecutable } from "../../scripts/release/executables.ts";
import { makePackage } from "../../scripts/release/package.ts";
import { bytesOf, installDebianPackage, installExecutable, installPackage } from "./forms.ts";
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

/** The next version of what is published: the same program under another number. */
const nextVersion = "99.0.0";

function nextTarball(system: SmallSystem): string {
  const directory = join(system.root, "next");
  system.run(["cp", "-r", join(release, "package"), directory]);
  const manifest = join(directory, "package.json");
  writeFileSync(manifest, JSON.stringify({ ...JSON.parse(readFileSync(manifest, "utf8")), version: nextVersion }));
  system.run(["npm", "pack", directory, "--pack-destination", release, "--ignore-scripts", "--loglevel=error"]);
  rmSync(directory, { recursive: true });
  return join(release, `headrace-${nextVersion}.tgz`);
}

function nextDebianPackage(system: SmallSystem, file: string): string {
  const directory = join(system.root, "next");
  system.run(["dpkg-deb", "--raw-extract", file, directory]);
  const control = join(directory, "DEBIAN", "control");
  writeFileSync(control, readFileSync(control, "utf8").replace(/^Version: .*$/m, `Version: ${nextVersion}`));
  const next = join(release, "next.deb");
  system.run(["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", directory, next]);
  rmSync(directory, { recursive: true });
  return next;
}

test("the package runs with Node alone and without a network, within 80 MB fetched and 200 MB on disk, is upgraded with its data, and leaves that alone", async () => {
  using system = new SmallSystem();
  const installed = installPackage(system, tarball);
  expect(installed.fetchedBytes).toBeLessThan(80e6);
  expect(bytesOf(system, join(system.root, "opt"))).toBeLessThan(200e6);
  expect(system.inside(["/opt/bin/headrace", "--version"])).toMatch(/^\d+\.\d+\.\d+\n$/);

  expect(outcome(await system.walk(installed.walk))).toEqual(walkedWell);
  installed.upgrade(nextTarball(system));
  const manifest = join(system.root, "opt", "lib", "node_modules", "headrace", "package.json");
  expect(JSON.parse(readFileSync(manifest, "utf8")).version).toBe(nextVersion);
  expect(outcome(await system.walk(installed.walk))).toEqual({ ...walkedWell, keptRequests: 2 });
  installed.remove();
  // What a prefix of npm has in it by itself.
  const ofNpm = ["opt/bin", "opt/lib"];
  expect(system.added().filter((path) => !ofNpm.includes(path))).toEqual(["root/data"]);
});

test("the executable runs where nothing is installed, unpacks itself once for all starts of a moment, and leaves its data and its cache", async () => {
  using system = new SmallSystem();
  const installed = installExecutable(system, await makeExecutable("linux-x64", release));
  const cache = join(system.root, "root", ".cache", "headrace");
  const starts = Array.from({ length: 4 }, () =>
    Bun.spawn(system.commandInside(["/usr/bin/headrace", "--version"]), { stdout: "pipe" }),
  );
  const versions = await Promise.all(starts.map(({ stdout }) => new Response(stdout).text()));
  expect(new Set(versions).size).toBe(1);
  expect(versions[0]).toMatch(/^\d+\.\d+\.\d+\n$/);
  expect(system.run(["ls", "-A", cache])).toMatch(/^[0-9a-f]{64}\n$/);

  expect(outcome(await system.walk(installed.walk))).toEqual(walkedWell);
  installed.remove();
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
  installExecutable(system, join(release, `headrace-${packageJson.version}-linux-x64`));
  system.inside(["/usr/bin/headrace", "--version"]);
  expect(older.map((path) => existsSync(path))).toEqual([true, false, false]);
  expect(readdirSync(cache)).toHaveLength(2);
});

test("the executable runs nothing from a folder that another user may write", () => {
  using system = new SmallSystem();
  const file = join(release, `headrace-${packageJson.version}-linux-x64`);
  installExecutable(system, file);
  const cache = join(system.root, "root", ".cache", "headrace");
  const started = () => system.inside(["/usr/bin/headrace", "--version"]);
  started();
  const [digest = ""] = readdirSync(cache);
  for (const folder of [cache, join(cache, digest)]) {
    system.run(["chown", "1234", folder]);
    expect(started).toThrow("belongs to another user (1234)");
    system.run(["chown", "0", folder]);
    system.run(["chmod", "g+w", folder]);
    expect(started).toThrow("others may write into");
    system.run(["chmod", "g-w", folder]);
  }
  expect(started()).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test("the Debian package runs as a user of its own, is upgraded with its data, keeps them when it is removed, and takes them when it is purged", async () => {
  using system = new SmallSystem();
  const file = makeDebianPackage(release);
  const installed = installDebianPackage(system, file);
  expect(installed.walk.user).not.toMatch(/^0:/);
  expect(outcome(await system.walk(installed.walk))).toEqual(walkedWell);
  installed.upgrade(nextDebianPackage(system, file));
  expect(system.inside(["dpkg-query", "--show", "headrace"])).toBe(`headrace\t${nextVersion}\n`);
  expect(outcome(await system.walk(installed.walk))).toEqual({ ...walkedWell, keptRequests: 2 });
  const ofDpkg = (path: string) => /^var\/(?:lib\/dpkg\/|log\/dpkg\.log$)/.test(path);
  const ofUsers = (path: string) => /^etc\/(?:passwd|group|shadow|gshadow|subuid|subgid)-$/.test(path);
  const left = () => system.added().filter((path) => !ofDpkg(path) && !ofUsers(path));
  installed.remove();
  expect(left()).toEqual(["etc/headrace", "var/lib/headrace"]);
  system.inside(["dpkg", "--purge", "headrace"]);
  expect(left()).toEqual([]);
});
