// The page of what holds under attack and faults: each line has its tests, and each test that it names exists.
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dir, "..", "..");
const page = readFileSync(join(root, "docs", "reference", "hardening.md"), "utf8");
const sections = ["OAuth", "Keys and tokens", "Limits", "Faults", "Supply chain", "Operations"];

interface Row {
  section: string;
  cells: string[];
}

function rows(): Row[] {
  let section = "";
  return page.split("\n").flatMap((line) => {
    if (line.startsWith("## ")) section = line.slice(3);
    const isRow = line.startsWith("| ") && !line.startsWith("| What holds |");
    return isRow ? [{ section, cells: line.slice(2, -2).split(" | ") }] : [];
  });
}

interface Named {
  file: string;
  link: string;
  name: string;
}

/** Of a cell: `[`file`](link): “name”`, one after the other. */
function testsIn(cell: string): Named[] {
  return cell.split("<br>").map((text) => {
    const [, file = "", link = "", name = ""] = /^\[`([^`]+)`\]\(([^)]+)\): “([^”]+)”$/.exec(text) ?? [];
    return { file, link, name };
  });
}

const title = /(["'`])((?:(?!\1)[^\\\n]|\\.)*)\1/;
const beginnings = [
  // test("…"), test.skipIf(…)("…"), describe.each(…)("…"), and what stands behind the table of a test.each.
  new RegExp(String.raw`\b(?:test|describe)(?:\.\w+(?:\([^()]*\))?)*\(\s*${title.source}`, "g"),
  new RegExp(String.raw`\)\(\s*${title.source}\s*,\s*(?:async\b|\(|function\b)`, "g"),
];

/** Names of tests and groups as they are written, what is filled in as `…`. */
function titlesIn(source: string): Set<string> {
  const found = beginnings.flatMap((beginning) => [...source.matchAll(beginning)].map((match) => match[2] ?? ""));
  return new Set(found.map((text) => text.replace(/\$\{[^}]*\}/g, "…").replace(/\\(["'`])/g, "$1")));
}

test("the page has all sections, and every line of it a statement, a source, a test and a figure", () => {
  expect([...new Set(rows().map(({ section }) => section))]).toEqual(sections);
  for (const { cells } of rows()) {
    expect(cells).toHaveLength(4);
    for (const cell of cells) expect([cells[0], cell.trim()]).not.toEqual([cells[0], ""]);
    expect(testsIn(cells[2] ?? "").filter(({ name }) => name === "")).toEqual([]);
  }
});

test("names nothing of the machine on which it was written", () => {
  expect(page).not.toMatch(/\/(?:tmp|work|home|root)\//);
});

describe.each(sections)("%s", (section) => {
  test("every test that is named is there, under that name", () => {
    const named = rows()
      .filter((row) => row.section === section)
      .flatMap(({ cells }) => testsIn(cells[2] ?? ""));
    expect(named.length).toBeGreaterThan(0);
    const missing = named.filter(({ file, link, name }) => {
      const path = join(root, file);
      return link !== `../../${file}` || !existsSync(path) || !titlesIn(readFileSync(path, "utf8")).has(name);
    });
    expect(missing).toEqual([]);
  });
});
