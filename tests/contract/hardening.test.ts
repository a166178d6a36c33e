// The page of what holds under attack and faults: each row has its tests, found by the tags above them.
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { hardeningPage, readTests } from "../../scripts/hardening.ts";

const root = join(import.meta.dir, "..", "..");
const source = readFileSync(join(root, "tests", "hardening.md"), "utf8");
const { page, faults } = hardeningPage(source, readTests(root));

test("requires tests for every hardening row, and a row for every tag", () => {
  expect(faults).toEqual([]);
});

test("gives every hardening row an id, a statement, a source, a test and a figure in a known section", () => {
  const sections = [...page.matchAll(/^## (.+)$/gm)].map(([, name]) => name);
  expect(sections).toEqual(["OAuth", "Keys and tokens", "Limits", "Faults", "Supply chain", "Operations"]);
  const rows = page.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| Id |"));
  expect(rows.length).toBeGreaterThan(80);
  for (const row of rows) {
    expect(row).toMatch(/^\| [A-Z]\d+ (\| [^| ](?:[^|]|\\\|)* ){4}\|$/);
  }
});

test("names nothing of the writer's machine in the hardening page", () => {
  expect(page).not.toMatch(/\/(?:tmp|work|home|root)\//);
});

describe("the hardening page is generated from tags above tests", () => {
  const table = "| Id | What holds | Source | Reached |\n|---|---|---|---|\n";
  const row = (id: string) => `| ${id} | It holds. | our own | 7 |\n`;
  const written = (rows: string, ...lines: string[]) =>
    hardeningPage(table + rows, [{ path: "src/a.test.ts", text: `${lines.join("\n")}\n` }]);
  const nothing = "test('is here', () => {});";

  test("names a test under its groups with open placeholders, for each of its rows", () => {
    const { page, faults } = written(
      row("A1") + row("A2"),
      'describe("another group", () => {',
      "});",
      'describe("a group", () => {',
      "  for (const many of [1, 2]) {",
      "    // hardening: A1, A2",
      "    test.skipIf(many > 1)(`is named $" + "{many} times`, () => {});",
      "  }",
      "  // hardening: A2",
      '  test.each(["a title".split(" "), ["b"]])(',
      '    "of %s | one",',
      "    () => {},",
      "  );",
      "});",
    );
    expect(faults).toEqual([]);
    const link = "[`src/a.test.ts`](../../src/a.test.ts)";
    expect(page).toContain(`| A1 | It holds. | our own | ${link}: “a group > is named … times” | 7 |`);
    expect(page).toContain(`${link}: “a group > is named … times”, “a group > of %s \\| one” | 7 |`);
  });

  test("refuses a row without a test, an unknown or duplicate id, and a tag above no test", () => {
    expect(written(row("A1")).faults).toEqual(["tests/hardening.md: no test says `// hardening: A1`."]);
    expect(written(row("A1"), "// hardening: A1, A2", nothing).faults).toEqual([
      "src/a.test.ts: tests/hardening.md has no row A2.",
    ]);
    expect(written(row("A1") + row("A1"), "// hardening: A1", nothing).faults).toEqual([
      "tests/hardening.md: two rows are A1.",
    ]);
    expect(written("", "// hardening: A1", "", nothing).faults).toEqual([
      'src/a.test.ts: below "// hardening: A1" there is no test with a name.',
    ]);
  });
});
