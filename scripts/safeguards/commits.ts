// Checks commits: the subject, and that a commit changes no more than its kind says.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sectionsThatDiffer, surfaceFile } from "../surface/surface.ts";
import { emitted, type RenamedCode, renamedCode, withoutTitles } from "./emitted.ts";

/** What a commit is checked by. */
export interface CommitMessage {
  subject: string;
  body: string;
}

/** A file in its states before and after a commit; undefined: not there. */
export interface ChangedFile {
  before: { path: string; text: string } | undefined;
  after: { path: string; text: string } | undefined;
}

export const maxSubjectCharacters = 72;
const renamesFile = "scripts/safeguards/renames.txt";
const subjectForm = /^(feat|fix|perf|refactor|test|docs|style|build|ci|chore)(?:\(([\w,/-]+)\))?!?: ([\w-]+)/;
/** Commits whose code stays as it is: they change comments, documents and formatting. */
const proseTypes = ["docs", "style"];

const verbs = new Set(
  readFileSync(join(import.meta.dir, "verbs.txt"), "utf8")
    .split(/\s+/)
    .filter(Boolean),
);

/** Each fault as a sentence. */
export function subjectFaults(subject: string): string[] {
  if (/^(?:Merge|Revert|fixup!|squash!) /.test(subject)) return [];
  const [, , , verb = ""] = subjectForm.exec(subject) ?? [];
  return [
    ...(subject.length > maxSubjectCharacters
      ? [`The subject has ${subject.length} characters; at most ${maxSubjectCharacters} are allowed.`]
      : []),
    ...(verb === "" ? ["The subject has no type, such as `fix(limits): `."] : []),
    ...(verb !== "" && !verbs.has(verb)
      ? [
          `The subject begins with "${verb}"; begin with an imperative that scripts/safeguards/verbs.txt lists, or add it.`,
        ]
      : []),
  ];
}

/**
 * Faults of what a commit changes. `docs` and `style` leave the JavaScript of src and web as it is; `test(titles)` changes
 * nothing but titles of tests; `refactor(names)` changes nothing but names, by the pairs of renames.txt. A change of the
 * surface is named in the body: `Surface: metrics, routes`.
 */
export function changeFaults({ subject, body }: CommitMessage, files: readonly ChangedFile[]): string[] {
  const [, type = "", scope = ""] = subjectForm.exec(subject) ?? [];
  const code = files.filter(isCode);
  return [
    ...(proseTypes.includes(type) ? proseFaults(code.filter(isProduct), type) : []),
    ...(type === "test" && scope === "titles" ? titleFaults(code) : []),
    ...(type === "refactor" && scope === "names" ? nameFaults(code, renamePairs(files)) : []),
    ...surfaceFaults(files, body),
  ];
}

const pathOf = ({ before, after }: ChangedFile) => (after ?? before)?.path ?? "";
const isCode = (file: ChangedFile) => /\.tsx?$/.test(pathOf(file)) && !pathOf(file).endsWith(".d.ts");
const isProduct = (file: ChangedFile) => /^(?:src|web)\//.test(pathOf(file)) && !/\.test\.tsx?$/.test(pathOf(file));

function differing(files: readonly ChangedFile[], form: (path: string, text: string) => string): string[] {
  return files
    .filter(({ before, after }) => !before || !after || form(before.path, before.text) !== form(after.path, after.text))
    .map(pathOf);
}

function proseFaults(files: readonly ChangedFile[], type: string): string[] {
  return differing(files, emitted).map(
    (path) => `${path}: its JavaScript changes, which a \`${type}\` commit leaves alone.`,
  );
}

function titleFaults(files: readonly ChangedFile[]): string[] {
  return differing(files, (path, text) => withoutTitles(emitted(path, text))).map(
    (path) => `${path}: more than titles of tests changes.`,
  );
}

/** The pairs of renames.txt as of after the commit: `old new` a line. */
function renamePairs(files: readonly ChangedFile[]): Set<string> {
  const changed = files.find((file) => pathOf(file) === renamesFile)?.after?.text;
  const path = join(import.meta.dir, "renames.txt");
  const text = changed ?? (existsSync(path) ? readFileSync(path, "utf8") : "");
  return new Set(text.split("\n").filter((line) => /^\S+ \S+$/.test(line)));
}

function nameFaults(files: readonly ChangedFile[], pairs: ReadonlySet<string>): string[] {
  const moved = new Map(files.flatMap(({ before, after }) => (before && after ? [[before.path, after.path]] : [])));
  return files.flatMap((file) => {
    const { before, after } = file;
    if (!before || !after) return [`${pathOf(file)}: a commit of names neither adds nor removes files.`];
    const moduleAt = (from: string) => (specifier: string) => {
      if (!specifier.startsWith(".")) return specifier;
      const path = join(from, "..", specifier);
      return moved.get(path) ?? path;
    };
    const [old, now] = [before, after].map(({ path, text }) => renamedCode(emitted(path, text), moduleAt(path)));
    const fault = old && now ? renameFault(old, now, pairs) : undefined;
    return fault === undefined ? [] : [`${after.path}: ${fault}`];
  });
}

/** The first difference that is no rename by the pairs. */
function renameFault(old: RenamedCode, now: RenamedCode, pairs: ReadonlySet<string>): string | undefined {
  const isRename = (before: string, after: string) => before === after || pairs.has(`${before} ${after}`);
  const length = Math.max(old.tokens.length, now.tokens.length);
  for (let index = 0; index < length; index++) {
    const [before, after] = [old.tokens[index], now.tokens[index]];
    const isFine =
      before &&
      after &&
      (before.text === after.text || (before.isName && after.isName && isRename(before.text, after.text)));
    if (!isFine)
      return `"${before?.text ?? "the end"}" becomes "${after?.text ?? "the end"}", which renames.txt does not list.`;
  }
  const rest = [...now.imports];
  for (const [module, imported, own] of old.imports) {
    const at = rest.findIndex((one) => one[0] === module && isRename(imported, one[1]) && isRename(own, one[2]));
    if (at === -1) return `the import of ${imported} from ${module} is not there any more.`;
    rest.splice(at, 1);
  }
  return rest[0] && `the import of ${rest[0][1]} from ${rest[0][0]} is new.`;
}

function surfaceFaults(files: readonly ChangedFile[], body: string): string[] {
  const { before, after } = files.find((file) => pathOf(file) === surfaceFile) ?? {};
  if (!before || !after) return [];
  const named = (body.match(/^Surface: .+(?:\n .+)*/gm) ?? []).join("\n");
  return sectionsThatDiffer(before.text, after.text)
    .filter((section) => !named.includes(section))
    .map((section) => `The surface changes in "${section}", and the body has no line "Surface: ${section}".`);
}
