// Each form in which Headrace is published, in a small Debian with nothing else: installed, asked, started again, upgraded, removed.
import { afterAll, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import {
  appendFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { makeDebianPackage } from "../../scripts/release/debian.ts";
import { makeExecutable } from "../../scripts/release/executables.ts";
import { makePackage } from "../../scripts/release/package.ts";
import { debianWithNode } from "../../scripts/test-programs.mjs";
import { long } from "../support/long.ts";
import { bytesOf, installDebianPackage, installExecutable, installPackage } from "./forms.ts";
import { SmallSystem } from "./small-system.ts";
import type { Walked } from "./walk.ts";

// A machine that does other things as well takes its time for archives of 150 MB.
setDefaultTimeout(180_000);

const version = /^\d+\.\d+\.\d+\n$/;
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

/** A number that is no user of the system, and so has no home. */
const nobody = ["setpriv", "--reuid=4321", "--regid=4321", "--clear-groups", "env", "-u", "HOME"];

/** A command that sees a file system of its own, with 20 MB, at a path of the system. */
function mounted({ root }: SmallSystem, path: string, command: readonly string[]): string[] {
  const mount = 'mount -t tmpfs -o size=20m tmpfs "$0" && exec "$@"';
  return ["unshare", "--mount", "sh", "-c", mount, join(root, path), ...command];
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

/** What an executable carries is told apart by its bytes. */
async function nextExecutable(): Promise<string> {
  const next = join(release, "next");
  cpSync(join(release, "package"), join(next, "package"), { recursive: true });
  appendFileSync(join(next, "package", "README.md"), "\n");
  return await makeExecutable("linux-x64", next);
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

test("packages the licences of bundled code", () => {
  const texts = readFileSync(join(release, "package", "THIRD-PARTY-LICENSES"), "utf8");
  for (const name of ["react", "zod", "node-llama-cpp"])
    expect(texts).toMatch(new RegExp(`^${name} [0-9.]+: MIT$`, "m"));
  expect(texts).toContain("Permission is hereby granted");
});

test("runs the package with Node alone offline, in 80 MB fetched and 200 MB on disk, upgrades it, and keeps its data", async () => {
  using system = new SmallSystem([debianWithNode]);
  const installed = installPackage(system, tarball);
  expect(installed.fetchedBytes).toBeLessThan(80e6);
  expect(bytesOf(system, join(system.root, "usr", "lib", "node_modules", "headrace"))).toBeLessThan(200e6);
  expect(system.inside([...nobody, "/usr/bin/headrace", "--version"])).toMatch(version);

  expect(outcome(await system.walk(installed.walk))).toEqual(walkedWell);
  installed.upgrade(nextTarball(system));
  const manifest = join(system.root, "usr", "lib", "node_modules", "headrace", "package.json");
  expect(JSON.parse(readFileSync(manifest, "utf8")).version).toBe(nextVersion);
  expect(outcome(await system.walk(installed.walk))).toEqual({ ...walkedWell, keptRequests: 2 });
  installed.remove();
  // What a prefix of npm has in it by itself.
  expect(system.added().filter((path) => path !== "usr/lib/node_modules")).toEqual(["root/data"]);
});

test("runs the executable on a bare machine, unpacks once for concurrent starts, upgrades, and keeps data and cache", async () => {
  using system = new SmallSystem();
  const installed = installExecutable(system, await makeExecutable("linux-x64", release));
  const cache = join(system.root, "root", ".cache", "headrace");
  const starts = Array.from({ length: 4 }, () =>
    Bun.spawn(system.commandInside(["/usr/bin/headrace", "--version"]), { stdout: "pipe" }),
  );
  const versions = await Promise.all(starts.map(({ stdout }) => new Response(stdout).text()));
  expect(new Set(versions).size).toBe(1);
  expect(versions[0]).toMatch(version);
  expect(system.run(["ls", "-A", cache])).toMatch(/^[0-9a-f]{64}\n$/);

  expect(outcome(await system.walk(installed.walk))).toEqual(walkedWell);
  installed.upgrade(await nextExecutable());
  expect(outcome(await system.walk(installed.walk))).toEqual({ ...walkedWell, keptRequests: 2 });
  // The files of the version before stay for a server that may still run: the next test says for how long.
  expect(readdirSync(cache)).toHaveLength(2);
  installed.remove();
  expect(system.added()).toEqual(["root/.cache", "root/data"]);
});

describe("the standalone executable", () => {
  let system: SmallSystem;
  let cache: string;
  const started = () => system.inside(["/usr/bin/headrace", "--version"]);

  beforeAll(() => {
    system = new SmallSystem();
    installExecutable(system, join(release, `headrace-${packageJson.version}-linux-x64`));
    cache = join(system.root, "root", ".cache", "headrace");
  });
  beforeEach(() => rmSync(cache, { recursive: true, force: true }));
  afterAll(() => system[Symbol.dispose]());

  test("keeps the unpacked files of two versions", () => {
    const older = ["a", "b", "c"].map((letter) => join(cache, letter.repeat(64)));
    for (const [age, path] of older.entries()) {
      system.run(["mkdir", "-p", path]);
      system.run(["touch", "-d", `${age + 1} days ago`, path]);
    }
    system.run(["chmod", "700", cache]);
    // Two drafts: a start was killed; another one unpacks at this moment, maybe in another container.
    const drafts = [join(cache, ".unpacking-killed"), join(cache, ".unpacking-running")];
    system.run(["mkdir", ...drafts]);
    system.run(["touch", "-d", "2 hours ago", drafts[0] ?? ""]);
    started();
    expect(older.map((path) => existsSync(path))).toEqual([true, false, false]);
    expect(drafts.map((path) => existsSync(path))).toEqual([false, true]);
    expect(readdirSync(cache)).toHaveLength(3);
  });

  test("names the place and size of missing disk space", () => {
    const small = system.commandInside(["env", "XDG_CACHE_HOME=/mnt", "headrace", "--version"]);
    expect(() => system.run(mounted(system, "/mnt", small))).toThrow(
      /into \/mnt\/headrace\/.*60 MB there \(20 MB are free\)/,
    );
    expect(() => system.inside([...nobody, "headrace"])).toThrow(
      /into \/\.cache\/headrace\/.*XDG_CACHE_HOME names another folder/,
    );
  });

  test("unpacks again if a cache cleaner removed a file", () => {
    started();
    const licence = join(cache, readdirSync(cache)[0] ?? "", "LICENSE");
    rmSync(licence);
    expect(started()).toMatch(version);
    expect(existsSync(licence)).toBe(true);
  });

  test("runs nothing from a folder that another user may write", () => {
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
    expect(started()).toMatch(version);
  });
});

test("runs the Debian package as its own user, upgrades with data, keeps data on removal, and deletes it on purge", async () => {
  using system = new SmallSystem();
  const file = makeDebianPackage(release, "amd64");
  const installed = installDebianPackage(system, file);
  expect(installed.walk.user).not.toMatch(/^0:/);
  expect(outcome(await system.walk(installed.walk))).toEqual(walkedWell);
  // What an administrator has changed: a variable, and, as `systemctl disable` does it, that it is not started at boot.
  const variables = join(system.root, "etc", "headrace", "environment");
  const link = join(system.root, "etc", "systemd", "system", "multi-user.target.wants", "headrace.service");
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
  appendFileSync(variables, "HEADRACE_LOG_LEVEL=warn\n");
  rmSync(link);
  const expectKept = () => {
    expect(readFileSync(variables, "utf8")).toEndWith("HEADRACE_LOG_LEVEL=warn\n");
    expect(lstatSync(link, { throwIfNoEntry: false })).toBeUndefined();
  };
  installed.upgrade(nextDebianPackage(system, file));
  expect(system.inside(["dpkg-query", "--show", "headrace"])).toBe(`headrace\t${nextVersion}\n`);
  expectKept();
  expect(outcome(await system.walk(installed.walk))).toEqual({ ...walkedWell, keptRequests: 2 });
  installed.upgrade(file);
  expect(system.inside(["dpkg-query", "--show", "headrace"])).toBe(`headrace\t${packageJson.version}\n`);
  expectKept();

  // Root asks about the service from a folder that its user may not enter.
  const configured = ["sh", "/var/lib/dpkg/info/headrace.postinst", "configure"];
  expect(system.inside(configured)).toContain("Set HEADRACE_PUBLIC_URL in /etc/headrace/environment");
  appendFileSync(variables, 'HEADRACE_PUBLIC_URL="https://127.0.0.1:9"\n# A remark\nHEADRACE_PORT=7999\n');
  expect(system.inside(configured)).toBe("");
  const report = JSON.parse(system.inside(["sh", "-c", "cd /root; headrace doctor --json || true"]));
  expect(report.data_dir).toBe("/var/lib/headrace");
  const found = (name: string) => report.checks.find((check: { name: string }) => check.name === name)?.found;
  expect(found("configuration")).toContain("production mode on 127.0.0.1:7999");
  expect(found("server")).toContain("none runs");
  expect(system.inside(["headrace", "setup-link", "--quiet"])).toStartWith("https://127.0.0.1:9/setup/");
  expect(system.run(["find", join(system.root, "var/lib/headrace"), "-user", "root"])).toBe("");

  const ofDpkg = (path: string) => /^var\/(?:lib\/dpkg\/|log\/dpkg\.log$)/.test(path);
  // Folders of systemd, which the small Debian is without.
  const ofSystemd = (path: string) =>
    /^(?:etc\/systemd\/system\/multi-user\.target\.wants$|var\/lib\/systemd)/.test(path);
  const ofUsers = (path: string) => /^etc\/(?:passwd|group|shadow|gshadow|subuid|subgid)-$/.test(path);
  const left = () => system.added().filter((path) => !ofDpkg(path) && !ofUsers(path) && !ofSystemd(path));
  installed.remove();
  expect(left()).toEqual(["etc/headrace", "var/lib/headrace"]);
  // Its user cannot be deleted while a process of it runs.
  const sleeper = "setpriv --reuid=headrace --regid=headrace --clear-groups sleep 20 & sleep 0.2";
  system.inside(["sh", "-c", `${sleeper}; dpkg --purge headrace`]);
  expect(left()).toEqual([]);
  const ofService = [
    "find",
    ...["etc", "var/lib/systemd"].map((path) => join(system.root, path)),
    "-name",
    "*headrace*",
  ];
  expect(system.run(ofService)).toBe("");
});

test("passes Debian's package checker without errors, and systemd's security check", () => {
  const tree = join(release, "tree");
  const run = (...command: string[]) => {
    const { stdout, stderr, exitCode } = Bun.spawnSync(command);
    return { exitCode, said: `${stdout}${stderr}` };
  };
  run("dpkg-deb", "--raw-extract", join(release, `headrace_${packageJson.version}_amd64.deb`), tree);
  // The checker takes half a minute of the processor for what others have built: the long form alone has it.
  if (!long) {
    for (const name of ["bun", "app", "dist", "node_modules"])
      rmSync(join(tree, "usr", "lib", "headrace", name), { recursive: true });
  }
  const checked = join(release, "checked.deb");
  run("dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", tree, checked);
  const lintian = run("lintian", "--allow-root", "--fail-on", "error", checked);
  expect([lintian.exitCode, lintian.said.match(/^E: .*/gm)]).toEqual([0, null]);

  // Its program is looked for as well: where it is here.
  const unit = join(tree, "lib", "systemd", "system", "headrace.service");
  writeFileSync(unit, readFileSync(unit, "utf8").replace("=/usr/bin/headrace", `=${tree}/usr/bin/headrace`));
  expect(run("systemd-analyze", "verify", unit)).toEqual({ exitCode: 0, said: "" });
  // In tenths, of 100.
  expect(run("systemd-analyze", "security", "--offline=yes", "--threshold=20", unit).exitCode).toBe(0);
});
