// Headrace as it was, and as it may be: the source of earlier versions from the history, and one after this one, to be run.
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import releases from "../../deploy/releases.json" with { type: "json" };
import { knownSteps } from "../../src/storage/sql/schema.ts";

const root = join(import.meta.dir, "..", "..");

/** A version that can be run as it would be by its own launcher. */
export interface Version {
  name: string;
  /** Steps of the schema that it knows. */
  schema: number;
  /** Path of its `src/main.ts`. */
  main: string;
}

export interface Versions {
  today: Version;
  /** By the order of `deploy/releases.json`. */
  earlier: readonly Version[];
  /** One that has a step of the schema more than today's, and writes a line on the spool that today's does not know. */
  later: Version;
  /** Removes their files. */
  [Symbol.dispose](): void;
}

/** Why the versions of `deploy/releases.json` cannot be run here; undefined where they can. */
export const missingHistory = releases.every(({ commit }) => git("cat-file", "-e", `${commit}^{tree}`).success)
  ? undefined
  : "the history of the repository is not here: a clone of it has it (git fetch --unshallow)";

export function prepareVersions(): Versions {
  const directory = mkdtempSync(join(tmpdir(), "headrace-versions-"));
  const place = (name: string) => join(directory, name, "src", "main.ts");
  const earlier = releases
    .slice(missingHistory === undefined ? 0 : releases.length)
    .map(({ version, commit, schema }) => {
      extract(commit, join(directory, commit));
      return { name: version, schema, main: place(commit) };
    });
  makeLater(join(directory, "later"));
  return {
    today: { name: "today's", schema: knownSteps, main: join(root, "src", "main.ts") },
    earlier,
    later: { name: "the next", schema: knownSteps + 1, main: place("later") },
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}

export const laterVersion = "0.2.0-next";

function extract(commit: string, to: string): void {
  const archive = git("archive", commit, "src", "package.json", "package-lock.json");
  if (!archive.success) throw new Error(archive.stderr.toString());
  const unpacked = Bun.spawnSync(["sh", "-c", 'mkdir "$0" && tar -x -C "$0"', to], { stdin: archive.stdout });
  if (!unpacked.success) throw new Error(unpacked.stderr.toString());
  borrow(to);
}

/** Packages and the built dashboard are those of today, which all of them get along with. */
function borrow(to: string): void {
  for (const name of ["node_modules", "dist"]) symlinkSync(join(root, name), join(to, name));
}

function makeLater(to: string): void {
  for (const name of ["src", "package.json", "package-lock.json"])
    cpSync(join(root, name), join(to, name), { recursive: true });
  borrow(to);
  change(join(to, "package.json"), /"version": "[^"]+"/, `"version": "${laterVersion}"`);
  const step = [
    "CREATE TABLE made_later (id TEXT PRIMARY KEY)",
    "ALTER TABLE usage_records ADD COLUMN made_later BIGINT NOT NULL DEFAULT 0",
    "ALTER TABLE api_keys ADD COLUMN made_later TEXT",
  ];
  change(join(to, "src/storage/sql/migrations.ts"), /\n\];\n$/, `\n  ${JSON.stringify(step)},\n];\n`);
  // Another kind of line for what has ended, which only this version knows.
  change(join(to, "src/ledger/spool-encoder.ts"), "[0x62, 0x70, 0x73]", "[0x62, 0x70, 0x74]");
  change(join(to, "src/ledger/spool-format.ts"), 'kind === "s" ?', 'kind === "s" || kind === "t" ?');
}

function change(file: string, from: string | RegExp, to: string): void {
  const before = readFileSync(file, "utf8");
  const after = before.replace(from, () => to);
  if (after === before) throw new Error(`${file} has no ${from}`);
  writeFileSync(file, after);
}

function git(...args: string[]) {
  return Bun.spawnSync(["git", "-C", root, ...args], { stdout: "pipe", stderr: "pipe" });
}
