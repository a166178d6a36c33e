// Installs what is missing before a command runs: npm packages by lock file, and Debian packages for tests.
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { bunExecutable, root } from "../bin/bun.mjs";
import { bunEnvironment } from "../bin/bun-environment.mjs";
import { remedyFor } from "./setup-remedy.mjs";

export { bunEnvironment, bunExecutable, root };

const lockFile = join(root, "package-lock.json");
const stampFile = join(root, "node_modules", ".headrace-setup");

/**
 * Installs the packages of the lock file unless the last install already matches it. Without `dev`, only what running
 * needs. Install scripts never run: none of our dependencies needs one. Does nothing where Headrace is itself an
 * installed package (no lock file beside it).
 */
export function ensureDependencies({ dev = false } = {}) {
  if (!existsSync(lockFile)) return;
  const lock = createHash("sha256").update(readFileSync(lockFile)).digest("hex");
  const stamp = existsSync(stampFile) ? readFileSync(stampFile, "utf8") : "";
  if (stamp === `${lock} all` || (!dev && stamp === `${lock} run`)) return;
  // A start that needs runtime packages alone says so beside development packages, too.
  if ((stamp === "" || stamp === `${lock} run`) && alreadyInstalled(dev)) {
    writeStamp(`${lock} ${dev ? "all" : "run"}`);
    return;
  }
  // Standard output may be read by a program (--json, --log-format json): progress goes to standard error.
  process.stderr.write(`Setting up Headrace: installing ${dev ? "development" : "runtime"} packages (once) …\n`);
  const started = Date.now();
  const args = [
    "ci",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    ...(dev ? [] : ["--omit=dev"]),
  ];
  // One that is exceeded kills npm: a lock file that it refuses may have thousands of faults to name.
  const maxBuffer = 256_000_000;
  const run = (options, stdio) =>
    spawnSync("npm", options, { cwd: root, stdio, maxBuffer, encoding: "utf8", shell: process.platform === "win32" });
  const npm = run(args, ["ignore", 2, "pipe"]);
  process.stderr.write(npm.stderr ?? "");
  if (npm.status !== 0) {
    const asked = (...options) => run(options, ["ignore", "pipe", "ignore"]).stdout?.trim() || undefined;
    const remedy = remedyFor({
      output: npm.stderr ?? "",
      spawnCode: npm.error?.code,
      node: process.versions.node,
      npm: asked("--version"),
      registry: asked("config", "get", "registry")?.replace(/\/\/[^/@]*@/, "//"),
      root,
    });
    process.stderr.write(
      `Setting up failed: \`npm ${args.join(" ")}\` in ${root} ended with ${npm.error?.message ?? `exit code ${npm.status}`}.\n${remedy}\n`,
    );
    process.exit(1);
  }
  writeStamp(`${lock} ${dev ? "all" : "run"}`);
  process.stderr.write(`Packages installed in ${((Date.now() - started) / 1000).toFixed(1)} s.\n`);
}

/** Whether npm itself installed what the lock file says: an installation that works is never replaced. */
function alreadyInstalled(dev) {
  try {
    const wanted = JSON.parse(readFileSync(lockFile, "utf8")).packages;
    const present = JSON.parse(readFileSync(join(root, "node_modules", ".package-lock.json"), "utf8")).packages;
    return Object.entries(wanted).every(([path, entry]) => {
      if (path === "" || entry.optional || (entry.dev && !dev)) return true;
      return present[path]?.version === entry.version && existsSync(join(root, path));
    });
  } catch {
    return false;
  }
}

function writeStamp(text) {
  try {
    writeFileSync(stampFile, text);
  } catch {
    // A read-only installation is compared anew at each start.
  }
}

/**
 * Builds the dashboard where its sources, or what they are made with, changed since the last time. Does nothing where it
 * came built and without its sources.
 */
export function ensureDashboard() {
  ensureBuilt({
    what: "Dashboard",
    sources: ["web"],
    script: join("scripts", "build-dashboard.ts"),
    target: "dashboard",
  });
}

/** Whether what makes the guides a site is installed: it is among the development packages. */
export function canBuildGuides() {
  return existsSync(join(root, "node_modules", "vitepress"));
}

/** Builds the guides as a site, as `ensureDashboard` does the dashboard; development packages are to be there. */
export function ensureGuides() {
  const documents = readdirSync(root).filter((name) => name.endsWith(".md"));
  const sources = ["site", "docs", "deploy", "examples", "package.json", ...documents];
  return ensureBuilt({ what: "Guides", sources, script: join("site", "build.ts"), target: "docs" });
}

/** False where it failed, which was told. */
function ensureBuilt({ what, sources, script, target }) {
  if (!existsSync(join(root, sources[0]))) return true;
  const inputs = [...sources, script, relative(root, lockFile)].flatMap(filesOf);
  const hash = createHash("sha256");
  for (const name of inputs) hash.update(`${name}\0`).update(readFileSync(join(root, name)));
  const wanted = hash.digest("hex");
  const stamp = join(root, "dist", target, ".built-from");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return true;
  const started = Date.now();
  const build = spawnSync(bunExecutable(), [join(root, script)], {
    cwd: root,
    stdio: ["ignore", 2, 2],
    env: bunEnvironment(),
  });
  if (build.status !== 0) {
    // The API works without it; the page says what is missing.
    process.stderr.write(`${what} could not be built (see above); all else works without.\n`);
    return false;
  }
  try {
    writeFileSync(stamp, wanted);
  } catch {
    // Built anew at the next start.
  }
  process.stderr.write(`${what} built in ${((Date.now() - started) / 1000).toFixed(1)} s.\n`);
  return true;
}

/** A file, or all in a folder, by path from the root. None where there is no such: an installed package has no lock file. */
function filesOf(name) {
  const path = join(root, name);
  if (!existsSync(path)) return [];
  if (statSync(path).isFile()) return [name];
  const below = readdirSync(path, { recursive: true }).map((one) => join(name, one));
  return below.filter((one) => statSync(join(root, one)).isFile()).sort();
}

/** Packages that bring a service, by the name of the service: tests start servers of their own. */
const services = {
  postgresql: "postgresql",
  prometheus: "prometheus",
  "prometheus-alertmanager": "prometheus-alertmanager",
  "redis-server": "redis-server",
};

/**
 * Debian packages that only tests or the benchmark use: installs the missing ones when root on Debian, else names the
 * exact command and exits. No service of theirs is started, now or at a later boot.
 * @param {Record<string, string>} needed where its executable is, names on the PATH or patterns of paths -> package
 */
export function ensureDebianPackages(needed) {
  const missing = Object.entries(needed).filter(
    ([places]) => spawnSync("sh", ["-c", `for p in ${places}; do command -v "$p" && exit; done; exit 1`]).status !== 0,
  );
  if (missing.length === 0) return;
  const packages = missing.map(([, name]) => name);
  const command = `apt-get update && apt-get install -y --no-install-recommends ${packages.join(" ")}`;
  const root = process.getuid?.() === 0 && existsSync("/etc/debian_version");
  if (!root) {
    process.stderr.write(`Missing on this machine: ${packages.join(", ")}. Install with:\n  sudo sh -c '${command}'\n`);
    process.exit(1);
  }
  process.stderr.write(`Installing Debian packages: ${packages.join(", ")} …\n`);
  withoutServices(packages, () =>
    execFileSync("sh", ["-c", command], {
      stdio: ["ignore", "ignore", 2],
      env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    }),
  );
}

/** Debian asks this file before it starts a service; where there is one already, it has its reasons. */
const servicePolicy = "/usr/sbin/policy-rc.d";

function withoutServices(packages, install) {
  const installed = packages.map((name) => services[name]).filter(Boolean);
  const asked = installed.length > 0 && !existsSync(servicePolicy);
  if (asked) writeFileSync(servicePolicy, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  try {
    install();
  } finally {
    if (asked) rmSync(servicePolicy);
  }
  for (const service of installed) spawnSync("update-rc.d", [service, "disable"]);
}
