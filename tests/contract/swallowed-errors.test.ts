// An error that is dropped on purpose has its reason beside it: a failure that nobody hears of becomes a false claim.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Glob } from "bun";

const root = join(import.meta.dir, "..", "..");
/** Lines above a call in which its reason may stand. */
const linesAbove = 5;

function withoutReason(path: string): string[] {
  const lines = readFileSync(join(root, path), "utf8").split("\n");
  return lines.flatMap((line, index) => {
    if (!line.includes(".catch(() => {})")) return [];
    const near = lines.slice(Math.max(0, index - linesAbove), index + 1);
    return near.some((one) => /^\s*(\/\/|\/\*\*|\*)|\s\/\/ /.test(one)) ? [] : [`${path}:${index + 1}`];
  });
}

test("requires a reason in a comment above every `.catch(() => {})`", () => {
  const files = [...new Glob("src/**/*.ts").scanSync(root)].filter((path) => !path.endsWith(".test.ts"));
  expect(files.length).toBeGreaterThan(500);
  expect(files.flatMap(withoutReason)).toEqual([]);
});
