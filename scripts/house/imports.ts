// Which file imports what, types included: what the checks of the structure look at.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";

export interface SourceFile {
  /** From the root of the repository, with slashes. */
  path: string;
  text: string;
  imports: readonly Import[];
}

export interface Import {
  /** From the root of the repository; undefined for what is not a file of ours. */
  path: string | undefined;
  /** The path as it is written in the import. */
  specifier: string;
  line: number;
}

/** `import`, `export … from`, `import()` and `new URL(…, import.meta.url)`. A comment is not looked at. */
const written =
  /^\s*(?:import|export)\b[^;"']*?\bfrom\s*"([^"]+)"|^\s*import\s*"([^"]+)"|\bimport\("([^"]+)"\)|\bnew URL\("(\.[^"]+)", import\.meta\.url\)/gm;

/** All of TypeScript below `directories` of `root`, by path. */
export function readSources(root: string, directories: readonly string[]): SourceFile[] {
  return directories
    .flatMap((directory) => filesIn(join(root, directory)))
    .sort()
    .map((file) => {
      const text = readFileSync(file, "utf8");
      return { path: relative(root, file), text, imports: importsOf(root, file, text) };
    });
}

function filesIn(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return filesIn(path);
    return /\.tsx?$/.test(entry.name) ? [path] : [];
  });
}

function importsOf(root: string, file: string, text: string): Import[] {
  return [...text.matchAll(written)].map((match) => {
    const specifier = match.slice(1).find((found) => found !== undefined) ?? "";
    const path = specifier.startsWith(".") ? relative(root, join(dirname(file), specifier)) : undefined;
    const at = match.index + match[0].lastIndexOf(specifier);
    return { path, specifier, line: lineAt(text, at) };
  });
}

export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

/** A test, or what only tests use. */
export function isTest({ path }: Pick<SourceFile, "path">): boolean {
  return /\.test\.tsx?$|\/testing\//.test(path);
}
