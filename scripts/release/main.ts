// Makes what is published, in dist/release: `npm run release -- [package] [executables] [<target> …] [debian] [image]`, all by default.
import { rmSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { makeDebianPackage } from "./debian.ts";
import { makeExecutable } from "./executables.ts";
import { makeImage } from "./image/image.ts";
import { makePackage } from "./package.ts";
import { targets } from "./targets.ts";

const root = join(import.meta.dir, "..", "..");
const release = join(root, "dist", "release");

const asked = process.argv.slice(2);
const isAsked = (name: string) => asked.length === 0 || asked.includes(name);
const known = ["package", "executables", "debian", "image", ...targets];
const unknown = asked.find((name) => !known.includes(name));
if (unknown !== undefined) throw new Error(`There is no \`${unknown}\` to make. There are: ${known.join(", ")}.`);

// All others carry it.
tellFile(await makePackage(release));
for (const target of targets) {
  if (isAsked("executables") || asked.includes(target)) tellFile(await makeExecutable(target, release));
}
if (isAsked("debian")) tellFile(makeDebianPackage(release));
if (isAsked("image")) tell(join(release, "image"), makeImage(release));
rmSync(join(release, "work"), { recursive: true, force: true });

function tellFile(path: string): void {
  tell(path, statSync(path).size);
}

function tell(path: string, size: number): void {
  process.stdout.write(`${relative(root, path)}  ${(size / 1e6).toFixed(1)} MB\n`);
}
