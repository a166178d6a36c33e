// Refuses words that were renamed to the field's: in comments, texts and documents, and in names of code and files.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isTest, lineAt, type SourceFile } from "./imports.ts";

/** The word that was renamed, and the field's word. */
const renamed: readonly (readonly [word: RegExp, instead: string])[] = [
  [/\bservers? of tools\b|\btool servers?\b/gi, "MCP server"],
  [/\bkept answers?\b/gi, "response cache"],
  [/\bstand-ins?\b/gi, "fallback"],
  [/\bupkeep\b/gi, "maintenance"],
  [/\boutward\b/gi, "egress"],
];

/** The word in a name that was renamed, and what such names say today. */
const renamedNames: readonly (readonly [word: RegExp, instead: string])[] = [
  [/^(?:un)?told$/, "reported, received or notified"],
  [/^standings?$/, "status, state or position"],
  [/^standins?$/, "fallback"],
  [/^followers?$/, "subscriber or observer"],
  [/^news$/, "notifications"],
  [/^vain$/, "withoutEffect"],
  [/^believable$/, "clamped"],
  [/^understated$/, "underReported"],
];

/** A name where a declaration, a member or an argument with a type has it. */
const declaredName =
  /(?:\b(?:const|let|function\*?|class|interface|type|get|set)\s+#?|^\s*(?:(?:readonly|static|async|override)\s+)*#?|[{(,]\s*#?)([A-Za-z_$][\w$]*)(?=\s*[?]?\s*[:=(<;,{}])/gm;

/** Names that are data: a kind of connection, which metrics name, and a member of stored usage. */
const allowedNames: ReadonlySet<string> = new Set(["responseFollower", "understated"]);

/** Data that keeps its old name: the context of a seal. */
const allowed: readonly (readonly [path: string, text: string])[] = [
  ["src/domain/tools/server-rules.ts", "return `tool server "],
];

/** One line for each refused word in product files and in documents, decisions of the past apart. */
export function checkRefusedWords(files: readonly SourceFile[], documents: readonly SourceFile[]): string[] {
  return [...files.filter((file) => !isTest(file)), ...documents].flatMap(({ path, text }) => {
    const lines = text.split("\n");
    return renamed.flatMap(([word, instead]) =>
      [...text.matchAll(word)]
        .map(({ 0: found, index }) => ({ found, line: lineAt(text, index) }))
        .filter(({ line }) => !allowed.some(([of, data]) => of === path && lines[line - 1]?.includes(data)))
        .map(({ found, line }) => `${path}:${line}: says "${found}"; the word is "${instead}".`),
    );
  });
}

/** One line for each name of a file, or of product code, that has a renamed word. */
export function checkRefusedNames(files: readonly SourceFile[]): string[] {
  return files.flatMap(({ path, text }) => {
    const fileName = path.slice(path.lastIndexOf("/") + 1).replace(/\..*$/, "");
    const code = isTest({ path }) ? "" : withoutComments(text);
    const names = [...code.matchAll(declaredName)].map(({ 0: whole, 1: name = "", index }) => ({
      name,
      line: lineAt(code, index + whole.length),
    }));
    return [
      ...refusals(fileName.split("-")).map((instead) => `${path}: a file is not named so; the word is "${instead}".`),
      ...names
        .filter(({ name }) => !allowedNames.has(name))
        .flatMap(({ name, line }) =>
          refusals(wordsOf(name)).map((instead) => `${path}:${line}: names "${name}"; the word is "${instead}".`),
        ),
    ];
  });
}

function refusals(words: readonly string[]): string[] {
  const all = [...words, ...words.slice(1).map((word, index) => `${words[index]}${word}`)];
  return renamedNames.flatMap(([word, instead]) => (all.some((one) => word.test(one)) ? [instead] : []));
}

function wordsOf(name: string): string[] {
  return name.split(/(?=[A-Z])|_/).map((word) => word.toLowerCase());
}

/** The same lines with comments left out, so that prose is not read as code. */
function withoutComments(text: string): string {
  return text
    .replace(/\/\*[\s\S]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ""))
    .replace(/(^|[^\S\n])\/\/.*$/gm, "");
}

/** The documents of the root and the guides. */
export function readDocuments(root: string): SourceFile[] {
  const names = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"];
  const guides = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
  return [...names, ...guides.map((name) => `docs/${name}`)].map((path) => ({
    path,
    text: readFileSync(join(root, path), "utf8"),
    imports: [],
  }));
}
