// Makes a release again in another directory, from the same files, and compares the bytes of the two.
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { modifiedAt } from "./time.ts";

const root = join(import.meta.dir, "..", "..");

/** The lines of SHA256SUMS that differ; empty where all bytes are the same. */
export function differencesOfSecond(args: readonly string[]): string[] {
  const directory = mkdtempSync(join(tmpdir(), "headrace-twice-"));
  try {
    const names = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
      cwd: root,
      encoding: "utf8",
    })
      .split("\0")
      .filter(Boolean);
    // What is deleted and not yet committed is still listed.
    for (const name of names.filter((one) => existsSync(join(root, one))))
      cpSync(join(root, name), join(directory, name));
    for (const built of ["dashboard", "docs"])
      cpSync(join(root, "dist", built), join(directory, "dist", built), { recursive: true });
    execFileSync("cp", ["-a", join(root, "node_modules"), directory]);
    execFileSync("git", ["init", "--quiet"], { cwd: directory });
    const { status } = spawnSync(process.execPath, ["scripts/release/main.ts", ...args], {
      cwd: directory,
      stdio: "inherit",
      // The copy has no commit.
      env: { ...process.env, SOURCE_DATE_EPOCH: String(modifiedAt()) },
    });
    if (status !== 0) throw new Error("The second release could not be made, see above.");
    const [first, second] = [root, directory].map((one) => sumsIn(one));
    return [...(first ?? [])].filter((line) => !second?.includes(line));
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** The provenance names the commit, which a copy of the files has none of. */
function sumsIn(directory: string): string[] {
  const lines = readFileSync(join(directory, "dist", "release", "SHA256SUMS"), "utf8")
    .trimEnd()
    .split("\n");
  return lines.filter((line) => !line.endsWith(".intoto.json"));
}
