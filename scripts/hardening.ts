// The page of what holds under attack and faults: the rows of tests/hardening.md, each with the tests that carry its id.
import { readFileSync } from "node:fs";
import { join } from "node:path";

export interface TestFile {
  /** From the root of the repository, with slashes. */
  path: string;
  text: string;
}

export interface Tagged {
  /** Ids of rows. */
  rows: readonly string[];
  /** The name as the runner prints it, the groups of its file first: `group > name`; what is filled in is `…`, or as written: `%s`. */
  name: string;
}

/** Directly above a test or a group of them: `// hardening: A1, A2`. */
const hardeningTag = /^[ \t]*\/\/ hardening: *(.*)\n/gm;
/** Tags of another kind between a tag and its test. */
const otherTags = /^(?:[ \t]*\/\/ (?:hardening|long-lived): .*\n)+/;
const beginning = /^([ \t]*)(?:test|describe)\b[^\n]*/gm;
const title = String.raw`(["'\`])((?:(?!\1)[^\\\n]|\\.)*)\1\s*,`;
/** `test("…",`, `test.skipIf(…)("…",`. */
const direct = new RegExp(String.raw`^\s*(?:test|describe)(?:\.\w+(?:\([^()]*\))?)*\(\s*${title}`);
/** Behind the table of a `test.each`. */
const behindTable = new RegExp(String.raw`\)\(\s*${title}`);

/** All tests of the repository, by path. */
export function readTests(root: string): TestFile[] {
  const paths = new Bun.Glob("{src,web,tests,scripts,bench,deploy}/**/*.test.{ts,tsx}").scanSync(root);
  return [...paths].sort().map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

/** The page, and what is wrong with the rows or the tags, one line each: nothing, where all is right. */
export function hardeningPage(source: string, files: readonly TestFile[]): { page: string; faults: string[] } {
  const faults: string[] = [];
  const tests = new Map<string, Map<string, string[]>>();
  for (const file of files) {
    for (const { rows, name } of taggedIn(file, hardeningTag, faults)) {
      for (const row of rows) {
        const byFile = tests.get(row) ?? new Map<string, string[]>();
        tests.set(row, byFile.set(file.path, [...(byFile.get(file.path) ?? []), name]));
      }
    }
  }
  const known = new Set<string>();
  const page = source.replace(/^\| (\w+) \| (.+) \| (.+) \| (.+) \|$/gm, (_, id: string, what, from, reached) => {
    if (id === "Id") return `| Id | ${what} | ${from} | Test | ${reached} |`;
    if (known.has(id)) faults.push(`tests/hardening.md: two rows are ${id}.`);
    known.add(id);
    const cell = [...(tests.get(id) ?? [])].map(([path, names]) => `${linkTo(path)}: ${names.map(quoted).join(", ")}`);
    if (cell.length === 0) faults.push(`tests/hardening.md: no test says \`// hardening: ${id}\`.`);
    return `| ${id} | ${what} | ${from} | ${cell.join("<br>")} | ${reached} |`;
  });
  for (const [id, byFile] of tests) {
    if (!known.has(id)) faults.push(`${[...byFile.keys()].join(", ")}: tests/hardening.md has no row ${id}.`);
  }
  // The rule below a head has a column more; from docs/reference links lead up one folder more than from tests.
  const ruled = page.replace(/^(\|---){4}\|$/gm, "|---|---|---|---|---|");
  return { page: ruled.replaceAll("](../", "](../../"), faults };
}

/** `tag`: its first group has the ids. `faults`: gets a line for each tag without a test below. */
export function taggedIn({ path, text }: TestFile, tag: RegExp, faults: string[]): Tagged[] {
  const begins = [...text.matchAll(beginning)].map(({ index, 1: indent = "" }) => ({ index, indent }));
  return [...text.matchAll(tag)].flatMap((match) => {
    const behind = match.index + match[0].length;
    const at = behind + (otherTags.exec(text.slice(behind))?.[0].length ?? 0);
    const test = begins.findIndex(({ index }) => index === at);
    const name = test === -1 ? undefined : titleOf(text.slice(at, begins[test + 1]?.index));
    if (name === undefined) {
      faults.push(`${path}: below "${match[0].trim()}" there is no test with a name.`);
      return [];
    }
    return [
      { rows: (match[1] ?? "").split(/, */), name: [...groupsOf(text, begins.slice(0, test + 1)), name].join(" > ") },
    ];
  });
}

/** `source`: from the beginning of a test to that of the next one. */
function titleOf(source: string): string | undefined {
  const [, , written] = direct.exec(source) ?? behindTable.exec(source) ?? [];
  return written?.replace(/\$\{[^}]*\}/g, "…").replace(/\\(["'`])/g, "$1");
}

/** The groups around the last of `begins`: the nearest ones before it that are indented less and not closed. */
function groupsOf(text: string, begins: readonly { index: number; indent: string }[]): string[] {
  let inner = begins.at(-1) ?? { index: 0, indent: "" };
  const groups: string[] = [];
  for (const [at, outer] of [...begins.entries()].reverse()) {
    if (outer.indent.length >= inner.indent.length) continue;
    const between = text.slice(outer.index, inner.index);
    if (new RegExp(`^${outer.indent}}?\\);$`, "m").test(between)) continue;
    groups.unshift(titleOf(text.slice(outer.index, begins[at + 1]?.index)) ?? "…");
    inner = outer;
  }
  return groups;
}

export function linkTo(path: string): string {
  return `[\`${path}\`](../${path})`;
}

/** For a cell of a table. */
export function quoted(name: string): string {
  return `“${name.replaceAll("|", "\\|")}”`;
}
