// Makes what is published, in dist/release: `npm run release -- [package] [executables] [<target> …] [debian] [image]`, all but
// the image by default. `--twice` makes it again elsewhere and compares, `--measure` writes the table of docs/install.md, `--key <file>` signs.
import { rmSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { attest } from "./attest.ts";
import { makeDebianPackage } from "./debian.ts";
import { makeExecutable } from "./executables.ts";
import { makeImage } from "./image/image.ts";
import { measure } from "./measure.ts";
import { makePackage } from "./package.ts";
import { targets } from "./targets.ts";
import { differencesOfSecond } from "./twice.ts";

const root = join(import.meta.dir, "..", "..");
const release = join(root, "dist", "release");

const { values, positionals: asked } = parseArgs({
  allowPositionals: true,
  options: { twice: { type: "boolean" }, measure: { type: "boolean" }, key: { type: "string" } },
});
const known = ["package", "executables", "debian", "image", ...targets];
const unknown = asked.find((name) => !known.includes(name));
if (unknown !== undefined) throw new Error(`There is no \`${unknown}\` to make. There are: ${known.join(", ")}.`);
const isAsked = (name: string) => asked.length === 0 || asked.includes(name);

if (values.measure) await measure(release);
else await make();

async function make(): Promise<void> {
  // All others carry the package.
  const files = [await makePackage(release)];
  for (const target of targets) {
    if (isAsked("executables") || asked.includes(target)) files.push(await makeExecutable(target, release));
  }
  if (isAsked("debian")) {
    for (const architecture of ["amd64", "arm64"] as const) files.push(makeDebianPackage(release, architecture));
  }
  rmSync(join(release, "work"), { recursive: true, force: true });
  attest(release, files, values.key);
  for (const file of files) {
    tell(file, statSync(file).size);
  }
  if (asked.includes("image")) tell(join(release, "image"), makeImage(release));
  if (!values.twice) return;
  const differences = differencesOfSecond(asked.filter((name) => name !== "image"));
  if (differences.length > 0) throw new Error(`The second release differs:\n${differences.join("\n")}`);
  process.stdout.write("The second release has the same bytes.\n");
}

function tell(path: string, size: number): void {
  process.stdout.write(`${relative(root, path)}  ${(size / 1e6).toFixed(1)} MB\n`);
}
