// Measures each form where it is installed in a small Debian, and writes the table of the README.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import {
  bytesOf,
  type Installed,
  installDebianPackage,
  installExecutable,
  installPackage,
} from "../../tests/install/forms.ts";
import { SmallSystem } from "../../tests/install/small-system.ts";
import { ensureSmallDebian } from "../test-programs.mjs";

const readme = join(import.meta.dir, "..", "..", "README.md");
const [begin, end] = ["<!-- measured by npm run release -- --measure -->", "<!-- end of what is measured -->"];

/** Needs root, mmdebstrap and what `npm run release` has made in `release`. */
export async function measure(release: string): Promise<void> {
  ensureSmallDebian();
  const { version } = packageJson;
  const forms: [string, (system: SmallSystem) => Installed][] = [
    ["npm package", (system) => installPackage(system, join(release, `headrace-${version}.tgz`))],
    ["Executable", (system) => installExecutable(system, join(release, `headrace-${version}-linux-x64`))],
    ["Debian package", (system) => installDebianPackage(system, join(release, `headrace_${version}_amd64.deb`))],
  ];
  const rows: string[] = [];
  for (const [name, install] of forms) rows.push(await row(name, install));
  const head = "| Linux x64 | Fetched | On disk | First start | Next start | Memory |";
  const table = [head, head.replaceAll(/[^|]+/g, " --- "), ...rows].join("\n");
  const text = readFileSync(readme, "utf8");
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`README.md has no place for the table: ${begin} … ${end}`);
  writeFileSync(readme, `${text.slice(0, from)}${begin}\n\n${table}\n\n${text.slice(to)}`);
  process.stdout.write(`${table}\n`);
}

async function row(name: string, install: (system: SmallSystem) => Installed): Promise<string> {
  using system = new SmallSystem();
  // What is needed to run it, such as Node, is not of it.
  const { walk, fetchedBytes } = install(system);
  const {
    startMs: [first, next],
    memoryBytes,
  } = await system.walk(walk);
  const own = system.added().filter((path) => path !== "usr/bin/node" && !/data$|^var\/(?:lib|log)\//.test(path));
  const bytes = own.reduce((sum, path) => sum + bytesOf(system, join(system.root, path)), 0);
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
  const megabytes = (count: number) => `${Math.round(count / 1e6)} MB`;
  const figures = [megabytes(fetchedBytes), megabytes(bytes), seconds(first), seconds(next), megabytes(memoryBytes)];
  return `| ${[name, ...figures].join(" | ")} |`;
}
