// The code blocks of the README and the guides, each with what it says to whom.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const root = join(import.meta.dir, "../../..");

export interface Block {
  file: string;
  language: string;
  text: string;
  /** The file and how the block begins: what lists of blocks name it by. */
  name: string;
}

export function blocksOf(file: string): Block[] {
  const text = readFileSync(join(root, file), "utf8");
  return [...text.matchAll(/^( *)```(\w*)\n(.*?)^ *```$/gms)].map(([, indent = "", language = "", inner = ""]) => {
    const unindented = inner.replaceAll(new RegExp(`^${indent}`, "gm"), "");
    return { file, language, text: unindented, name: `${file}: ${unindented.trim().split("\n")[0]}` };
  });
}

export const documents = [
  "README.md",
  ...readdirSync(join(root, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

/** What is typed in a transcript. */
export function typedIn({ text }: Block): string | undefined {
  const lines = [...text.matchAll(/^\$ (.*)$/gm)].map(([, line = ""]) => line);
  return lines.length > 0 ? lines.join("\n") : undefined;
}
