// `bun scripts/fingerprint.ts [revision]`: the SHA-256 of the JavaScript that src and web become, of the working tree or of a
// revision. Two states that differ in comments, types and formatting alone have the same one.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { readSources } from "./house/imports.ts";
import { emitted } from "./safeguards/emitted.ts";

const root = join(import.meta.dir, "..");
const [revision] = process.argv.slice(2);
const hash = createHash("sha256");
for (const { path, text } of revision === undefined ? readSources(root, ["src", "web"]) : sourcesAt(revision)) {
  if (!path.endsWith(".d.ts")) hash.update(`${path}\0${emitted(path, text)}\0`);
}
console.log(hash.digest("hex"));

function sourcesAt(commit: string): { path: string; text: string }[] {
  const paths = git(["ls-tree", "-r", "-z", "--name-only", commit, "--", "src", "web"])
    .toString()
    .split("\0")
    .filter((path) => /\.tsx?$/.test(path))
    .sort();
  const given = git(["cat-file", "--batch"], paths.map((path) => `${commit}:${path}\n`).join(""));
  let offset = 0;
  return paths.map((path) => {
    const head = given.indexOf("\n", offset);
    const size = Number(given.toString("utf8", offset, head).split(" ").at(-1));
    offset = head + 1 + size + 1;
    return { path, text: given.toString("utf8", head + 1, head + 1 + size) };
  });
}

function git(args: readonly string[], input = ""): Buffer {
  const { status, stdout, stderr } = spawnSync("git", args, { cwd: root, input, maxBuffer: 1e9 });
  if (status !== 0) throw new Error(`git ${args[0]} failed: ${stderr.toString().trim()}`);
  return stdout;
}
