// `bun scripts/commits.ts [base]`: checks each commit behind `base`, by default those made since commits are checked.
// `bun scripts/commits.ts --message <file>`: checks the commit that is about to be made, as a hook of git.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type ChangedFile, type CommitMessage, changeFaults, subjectFaults } from "./safeguards/commits.ts";

const root = join(import.meta.dir, "..");
/** The newest commits that are looked at. */
const maxCommits = 200;

function git(args: readonly string[], input = ""): string {
  const { status, stdout, stderr } = spawnSync("git", args, { cwd: root, input, encoding: "utf8", maxBuffer: 1e9 });
  if (status !== 0) throw new Error(`git ${args[0]} failed: ${stderr.trim()}`);
  return stdout;
}

/** Undefined where there is no history to look at: in an archive, or a clone of one commit. */
function defaultBase(): string | undefined {
  try {
    const first = git(["log", "--diff-filter=A", "--format=%H", "--", "scripts/safeguards/commits.ts"]).trim();
    return first.split("\n").at(-1) || undefined;
  } catch {
    return undefined;
  }
}

function commitsSince(base: string | undefined): (CommitMessage & { id: string })[] {
  if (base === undefined) return [];
  const text = git(["log", "--no-merges", `--max-count=${maxCommits}`, "--format=%H%x1f%s%x1f%b%x1e", `${base}..HEAD`]);
  return text
    .split("\x1e")
    .map((one) => one.trim().split("\x1f"))
    .flatMap(([id = "", subject = "", body = ""]) => (id === "" ? [] : [{ id, subject, body }]));
}

/** What a commit changed, with both texts of each file. */
function filesOf(commit: string): ChangedFile[] {
  const listed = git(["diff-tree", "-r", "-M", "-z", "--no-commit-id", "--name-status", `${commit}^`, commit]);
  return changedFiles(listed, `${commit}^:`, `${commit}:`);
}

/** The same of what the index has for the next commit. */
function stagedFiles(): ChangedFile[] {
  return changedFiles(git(["diff", "--cached", "-M", "-z", "--name-status", "HEAD"]), "HEAD:", ":");
}

/** `listed`: names and states, as git writes them with -z; `before` and `after`: what stands before a path for `git show`. */
function changedFiles(listed: string, before: string, after: string): ChangedFile[] {
  const words = listed.split("\0").filter(Boolean);
  const pairs: [old: string | undefined, now: string | undefined][] = [];
  while (words.length > 0) {
    const [state = "", path = ""] = words.splice(0, 2);
    if (state.startsWith("R")) pairs.push([path, words.shift()]);
    else pairs.push([state === "A" ? undefined : path, state === "D" ? undefined : path]);
  }
  const isRead = (path: string | undefined) => path !== undefined && /\.tsx?$|^scripts\/.*\.txt$/.test(path);
  const textOf = (where: string, path: string | undefined) =>
    path === undefined || !isRead(path) ? undefined : { path, text: git(["show", where + path]) };
  return pairs
    .filter((pair) => pair.some(isRead))
    .map(([old, now]) => ({ before: textOf(before, old), after: textOf(after, now) }));
}

function faultsOf(message: CommitMessage, files: readonly ChangedFile[]): string[] {
  return [...subjectFaults(message.subject), ...changeFaults(message, files)];
}

function aboutToBeMade(file: string): [CommitMessage, readonly ChangedFile[]] {
  const lines = readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => !line.startsWith("#"));
  const [subject = "", ...body] = lines.join("\n").trim().split("\n");
  return [{ subject, body: body.join("\n") }, stagedFiles()];
}

const [first, file] = process.argv.slice(2);
const base = first ?? defaultBase();
const commits: [CommitMessage, readonly ChangedFile[]][] =
  first === "--message"
    ? [aboutToBeMade(file ?? "")]
    : commitsSince(base).map((commit) => [commit, filesOf(commit.id)]);
let faults = 0;
for (const [message, files] of commits) {
  const found = faultsOf(message, files);
  if (found.length === 0) continue;
  faults += found.length;
  console.error(`${message.subject}\n${found.map((fault) => `  ${fault}\n`).join("")}`);
}
process.exit(faults === 0 ? 0 : 1);
