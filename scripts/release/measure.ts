// Measures each form where it is installed in a small Debian, and the image as it is, and writes the table of the README.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
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
import type { Walk } from "../../tests/install/walk.ts";
import { debianWithNode, ensureSmallDebians, smallDebian } from "../test-programs.mjs";
import { environment, user } from "./image/config.ts";
import { makeImage } from "./image/image.ts";
import { writeLayers } from "./image/layers.ts";

const page = join(import.meta.dir, "..", "..", "docs", "install.md");
const [begin, end] = ["<!-- measured by npm run release -- --measure -->", "<!-- end of what is measured -->"];

/** Needs root, mmdebstrap and what `npm run release` has made in `release`. */
export async function measure(release: string): Promise<void> {
  ensureSmallDebians();
  const { version } = packageJson;
  const forms: [string, string, (system: SmallSystem) => Installed][] = [
    ["npm package", debianWithNode, (system) => installPackage(system, join(release, `headrace-${version}.tgz`))],
    ["Executable", smallDebian, (system) => installExecutable(system, join(release, `headrace-${version}-linux-x64`))],
    [
      "Debian package",
      smallDebian,
      (system) => installDebianPackage(system, join(release, `headrace_${version}_amd64.deb`)),
    ],
  ];
  const rows: string[] = [];
  for (const [name, debian, install] of forms) rows.push(await installedRow(name, debian, install));
  rows.push(await imageRow(release));
  const head = "| Linux x64 | Fetched | On disk | First start | Next start | Memory |";
  const table = [head, head.replaceAll(/[^|]+/g, " --- "), ...rows].join("\n");
  const text = readFileSync(page, "utf8");
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/install.md has no place for the table: ${begin} … ${end}`);
  writeFileSync(page, `${text.slice(0, from)}${begin}\n\n${table}\n\n${text.slice(to)}`);
  process.stdout.write(`${table}\n`);
}

async function installedRow(
  name: string,
  debian: string,
  install: (system: SmallSystem) => Installed,
): Promise<string> {
  using system = new SmallSystem([debian]);
  const { walk, fetchedBytes } = install(system);
  const diskBytes = () => {
    const own = system.added().filter((path) => !/data$|^npm-cache$|^var\/(?:lib|log)\//.test(path));
    return own.reduce((sum, path) => sum + bytesOf(system, join(system.root, path)), 0);
  };
  return await row(name, system, { walk, fetchedBytes, diskBytes });
}

/** The image has a system of its own, which counts. */
async function imageRow(release: string): Promise<string> {
  const made = mkdtempSync(join(tmpdir(), "headrace-layers-"));
  try {
    using system = new SmallSystem(writeLayers(made, join(release, "package"), 0));
    const bytes = bytesOf(system, system.root);
    // It listens as the other forms do here, without an address of its own.
    const { HEADRACE_MODE: _mode, HEADRACE_HOST: _host, ...others } = environment;
    // What enters it is a program of this machine.
    const env = { ...others, PATH: `${others.PATH}:/usr/sbin:/sbin` };
    const walk = { command: ["/usr/local/bin/headrace"], user: `${user}:${user}`, dataDir: "/data", env };
    return await row("Image", system, { walk, fetchedBytes: makeImage(release), diskBytes: () => bytes });
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
}

interface Measured {
  walk: Omit<Walk, "system">;
  fetchedBytes: number;
  /** Asked once it was run. */
  diskBytes(): number;
}

async function row(name: string, system: SmallSystem, { walk, fetchedBytes, diskBytes }: Measured): Promise<string> {
  const {
    startMs: [first, next],
    memoryBytes,
  } = await system.walk(walk);
  const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
  const megabytes = (count: number) => `${Math.round(count / 1e6)} MB`;
  const sizes = [megabytes(fetchedBytes), megabytes(diskBytes())];
  return `| ${[name, ...sizes, seconds(first), seconds(next), megabytes(memoryBytes)].join(" | ")} |`;
}
