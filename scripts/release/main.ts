// Makes what is published, in dist/release: the package, and with the word `image` the OCI image as well.
import { statSync } from "node:fs";
import { join, relative } from "node:path";
import { makeImage } from "./image/image.ts";
import { makePackage } from "./package.ts";

const root = join(import.meta.dir, "..", "..");
const release = join(root, "dist", "release");

const tarball = await makePackage(release);
tell(tarball, statSync(tarball).size);
if (process.argv.includes("image")) tell(join(release, "image"), makeImage(release));

function tell(path: string, size: number): void {
  process.stdout.write(`${relative(root, path)}  ${(size / 1e6).toFixed(1)} MB\n`);
}
