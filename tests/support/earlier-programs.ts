// Headrace as it was, and as it may be: the source of earlier versions from the history, and one after this one, to be run.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import releases from "../../deploy/releases.json" with { type: "json" };
import { knownSteps } from "../../src/storage/sql/schema.ts";

const root = join(import.meta.dir, "..", "..");
const sources = ["src", "package.json", "package-lock.json"];

/** A version that can be run as it would be by its own launcher. */
export interface Version {
  /** Steps of the schema that it knows. */
  schema: number;
  /** Path of its `src/main.ts`. */
  main: string;
}

export type Release = (typeof releases)[number];

/** Why the versions of `deploy/releases.json` cannot be run here; undefined where they can. */
export const missingHistory =
  Bun.which("git") && releases.every(({ commit }) => git("cat-file", "-e", `${commit}^{tree}`).success)
    ? undefined
    : "the history of the repository is not here: a clone of it has it (git fetch --unshallow)";
if (missingHistory !== undefined) console.warn(`Earlier versions are not tested: ${missingHistory}`);

export const today: Version = { schema: knownSteps, main: join(root, "src", "main.ts") };

let directory: string | undefined;
const made = new Map<string, Version>();

/** Its source is taken from the history once for all tests of this process. */
export function earlierVersion({ commit, schema }: Release): Version {
  return once(commit, schema, (to) => {
    const archive = git("archive", commit, ...sources);
    if (!archive.success) throw new Error(archive.stderr.toString());
    unpack(archive.stdout, to);
  });
}

export const laterName = "0.2.0-next";

/** One that has a step of the schema more than today's, and writes lines on the spool that today's cannot read. */
export function laterVersion(): Version {
  return once(laterName, knownSteps + 1, (to) => {
    unpack(run(["tar", "-c", "-C", root, ...sources]), to);
    change(join(to, "package.json"), /"version": "[^"]+"/, `"version": "${laterName}"`);
    const step = [
      "CREATE TABLE made_later (id TEXT PRIMARY KEY)",
      "ALTER TABLE usage_records ADD COLUMN made_later BIGINT NOT NULL DEFAULT 0",
      "ALTER TABLE api_keys ADD COLUMN made_later TEXT",
    ];
    change(join(to, "src/storage/sql/migrations.ts"), /\n\];\n$/, `\n  ${JSON.stringify(step)},\n];\n`);
    // Another kind of line for what has ended.
    change(join(to, "src/ledger/spool-encoder.ts"), "[0x62, 0x70, 0x73]", "[0x62, 0x70, 0x74]");
    change(join(to, "src/ledger/spool-format.ts"), 'kind === "s" ?', 'kind === "s" || kind === "t" ?');
  });
}

/** Packages and the built dashboard are those of today, which all versions get along with. */
function once(name: string, schema: number, make: (to: string) => void): Version {
  const known = made.get(name);
  if (known) return known;
  directory ??= temporary();
  const to = join(directory, name);
  mkdirSync(to);
  make(to);
  for (const borrowed of ["node_modules", "dist"]) symlinkSync(join(root, borrowed), join(to, borrowed));
  const version = { schema, main: join(to, "src", "main.ts") };
  made.set(name, version);
  return version;
}

function temporary(): string {
  const path = mkdtempSync(join(tmpdir(), "headrace-versions-"));
  process.on("exit", () => rmSync(path, { recursive: true, force: true }));
  return path;
}

function unpack(archive: Uint8Array, to: string): void {
  run(["tar", "-x", "--exclude=*.test.ts", "-C", to], archive);
}

function change(file: string, from: string | RegExp, to: string): void {
  const before = readFileSync(file, "utf8");
  const after = before.replace(from, () => to);
  if (after === before) throw new Error(`${file} has no ${from}`);
  writeFileSync(file, after);
}

function git(...args: string[]) {
  // A checkout may be another user's, as in a container: nothing of it is run but what is asked for here.
  return Bun.spawnSync(["git", "-c", "safe.directory=*", "-C", root, ...args], { stdout: "pipe", stderr: "pipe" });
}

function run(command: string[], stdin?: Uint8Array): Uint8Array {
  const { success, stdout, stderr } = Bun.spawnSync(command, {
    ...(stdin && { stdin }),
    ...{ stdout: "pipe", stderr: "pipe" },
  });
  if (!success) throw new Error(stderr.toString());
  return stdout;
}
