// Makes what is published, in dist/release.
import { statSync } from "node:fs";
import { join, relative } from "node:path";
import { makePackage } from "./package.ts";

const root = join(import.meta.dir, "..", "..");
const release = join(root, "dist", "release");

tell(await makePackage(release));

function tell(file: string): void {
  process.stdout.write(`${relative(root, file)}  ${(statSync(file).size / 1e6).toFixed(1)} MB\n`);
}
