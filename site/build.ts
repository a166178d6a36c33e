// Builds the guides as a site: dist/docs, of this version and of those that docs/versions.json names by their git tags.
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { VersionOrder } from "./build-version.ts";
import { publish } from "./publish.ts";

const home = join(import.meta.dir, "..");
const { values } = parseArgs({
  options: { root: { type: "string", default: home }, out: { type: "string", default: join(home, "dist", "docs") } },
});
const { root, out } = values;
const fresh = `${out}.${process.pid}`;
const former = `${fresh}.former`;
const checkouts = mkdtempSync(join(tmpdir(), "headrace-docs-"));
try {
  const builds = [{ path: "", root }, ...formerVersions()].map(({ path, root: source }) => ({
    ...{ path, root: source },
    version: { name: versionOf(source), base: `/docs/${path}` },
  }));
  const versions = builds.map(({ version }) => version);
  for (const { path, root: source, version } of builds) {
    buildVersion({ root: source, version, versions, out: join(fresh, path) });
  }
  publish(
    fresh,
    builds.map(({ path }) => path),
  );
  // A server that gives them out meanwhile is without them for no longer than a renaming takes.
  if (existsSync(out)) renameSync(out, former);
  renameSync(fresh, out);
} finally {
  for (const path of [fresh, former]) rmSync(path, { recursive: true, force: true });
  rmSync(checkouts, { recursive: true });
}

/** In a process of its own: the generator keeps what it has read of one version. It empties its folder first. */
function buildVersion(order: VersionOrder): void {
  mkdirSync(order.out, { recursive: true });
  const { status } = spawnSync(process.execPath, [join(import.meta.dir, "build-version.ts"), JSON.stringify(order)], {
    stdio: ["ignore", "ignore", "inherit"],
    env: process.env,
  });
  if (status !== 0) throw new Error(`The guides of ${order.version.name} could not be built (see above).`);
}

/** The documents of each tag, taken out of git. */
function formerVersions(): { path: string; root: string }[] {
  const list = join(root, "docs", "versions.json");
  if (!existsSync(list)) return [];
  return (JSON.parse(readFileSync(list, "utf8")) as string[]).map((tag) => {
    const checkout = join(checkouts, tag);
    mkdirSync(checkout);
    const archive = execFileSync("git", ["-C", root, "archive", tag], { maxBuffer: 1e9 });
    execFileSync("tar", ["-x", "-C", checkout], { input: archive });
    return { path: `${tag}/`, root: checkout };
  });
}

function versionOf(repository: string): string {
  return (JSON.parse(readFileSync(join(repository, "package.json"), "utf8")) as { version: string }).version;
}
