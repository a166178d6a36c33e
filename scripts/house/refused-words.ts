// Refuses words that were renamed to the field's, in comments, texts and documents.
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

/** Data that keeps its old name: the context of a seal, and the glossary, which explains the old word. */
const allowed: readonly (readonly [path: string, text: string])[] = [
  ["src/domain/tools/server-rules.ts", "return `tool server "],
  ["docs/glossary.md", "| stand-in"],
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
