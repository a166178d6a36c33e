<<<<<<< HEAD
// Makes what is published, in dist/release: the package, and with the word `image` the OCI image as well.
import { statSync } from "node:fs";
import { join, relative } from "node:path";
import { makeImage } from "./image/image.ts";
=======
// Makes what is published, in dist/release: `npm run release -- [package] [executables] [<target> …] [debian]`, all by default.
import { rmSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { makeDebianPackage } from "./debian.ts";
import { makeExecutable } from "./executables.ts";
>>>>>>> h-pack
import { makePackage } from "./package.ts";
import { targets } from "./targets.ts";

const root = join(import.meta.dir, "..", "..");
const release = join(root, "dist", "release");

<<<<<<< HEAD
const tarball = await makePackage(release);
tell(tarball, statSync(tarball).size);
if (process.argv.includes("image")) tell(join(release, "image"), makeImage(release));
=======
const asked = process.argv.slice(2);
const isAsked = (name: string) => asked.length === 0 || asked.includes(name);
const known = ["package", "executables", "debian", ...targets];
const unknown = asked.find((name) => !known.includes(name));
if (unknown !== undefined) throw new Error(`There is no \`${unknown}\` to make. There are: ${known.join(", ")}.`);

// All others carry it.
tell(await makePackage(release));
for (const target of targets) {
  if (isAsked("executables") || asked.includes(target)) tell(await makeExecutable(target, release));
}
if (isAsked("debian")) tell(makeDebianPackage(release));
rmSync(join(release, "work"), { recursive: true, force: true });
>>>>>>> h-pack

function tell(path: string, size: number): void {
  process.stdout.write(`${relative(root, path)}  ${(size / 1e6).toFixed(1)} MB\n`);
}
