// Every regular expression of the source takes a time that grows with its text, and not with the square of it.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { growth } from "../support/growth.ts";

const root = join(import.meta.dir, "..", "..");
/** What they look at is none of a stranger's, or short. */
const excepted: Readonly<Record<string, string>> = {
  "src/domain/limits/limit-refusal.ts": "a number of ours, with nine decimals",
  "src/http/api/usage/usage-routes.ts": "the same",
  "src/cli/terminal/figures.ts": "the digits of a number",
  "src/engines/llama/npm-command.ts": "what npm said to the operator who called it",
};
const defaultLength = 4_000;
const timesLength = 4;
/** The cost as a multiple of four inputs of a quarter of the length. A square would be 4. */
const maxTimesCost = 2.2;
/** What is linear takes some microseconds for so many characters, whatever else the machine does. */
const suspectMs = 1;

/** Literals, by what may stand before one; a division that looks like one is no regular expression, or a harmless one. */
const literal = /(?<=[(,=:[!&|?{};\n>]\s*|return\s+)\/((?:[^/\\\n[]|\\.|\[(?:[^\]\\\n]|\\.)*\])+)\/([dgimsuvy]*)/g;

function expressions(): [place: string, expression: RegExp][] {
  const found = new Map<string, [string, RegExp]>();
  for (const file of new Bun.Glob("src/**/*.ts").scanSync(root)) {
    if (file.endsWith(".test.ts") || file in excepted) continue;
    for (const [, source = "", flags] of readFileSync(join(root, file), "utf8").matchAll(literal)) {
      const expression = compiled(source, flags);
      if (expression) found.set(String(expression), [`${file} ${expression}`, expression]);
    }
  }
  return [...found.values()];
}

function compiled(source: string, flags: string | undefined): RegExp | undefined {
  try {
    return new RegExp(source, flags);
  } catch {
    return undefined;
  }
}

const plain = [...' \t\na0.-_/:;,="\\{}<&%+@#?!', "é"];
const around = ["", " ", "-", ".", "a", "/", "\n"];

/** What to repeat: characters, those of its classes, and the words in it with something before or behind them. */
function units(source: string): Set<string> {
  const found = new Set(plain);
  const outside = source
    .replace(/\[(?:[^\]\\]|\\.)*\]/g, "\0")
    .replace(/\\p\{[^}]*\}|\\[bBdDwWsSu]|\(\?[:=!<]*/g, "\0")
    .replace(/\\(.)/g, "$1");
  for (const word of outside.split(/[\0()|*+?{}^$]+/)) {
    if (word === "" || word.length > 40) continue;
    for (const other of around)
      for (const unit of [word + other, other + word, `${other}${word}aaaaaa`]) found.add(unit);
  }
  for (const [, members = ""] of source.matchAll(/\[\^?((?:[^\]\\]|\\.)*)\]/g)) {
    for (const member of members.replaceAll("\\", "")) for (const other of ["", " ", "a"]) found.add(other + member);
  }
  return found;
}

function textsFor(source: string): ((length: number) => string)[] {
  const [first = ""] = source.replace(/\\(.)/g, "$1").match(/(?<=^\^?)[\w:/"<,]+/) ?? [];
  const before = new Set(["", first, "a", "{"]);
  return [...units(source)].flatMap((unit) =>
    [...before].flatMap((start) =>
      ["", "\0", " x"].map((end) => (count: number) => start + unit.repeat(Math.ceil(count / unit.length)) + end),
    ),
  );
}

function tried(expression: RegExp, text: string): void {
  expression.lastIndex = 0;
  if (expression.global) text.replace(expression, "");
  else expression.test(text);
}

/** The text of so many characters for which the time grows too fast, by what it begins with. */
async function fault(expression: RegExp, length = defaultLength): Promise<string | undefined> {
  for (const textOf of textsFor(expression.source)) {
    const [short, long] = [textOf(length), textOf(timesLength * length)];
    const before = performance.now();
    tried(expression, short);
    if (performance.now() - before < suspectMs) continue;
    const work = { short: () => tried(expression, short), long: () => tried(expression, long), times: timesLength };
    const times = await growth(work, maxTimesCost);
    if (times > maxTimesCost) return `${JSON.stringify(short.slice(0, 30))}…: ${times.toFixed(1)} times the time`;
  }
  return undefined;
}

// hardening: F4
test("matches every regular expression of the source in linear time", async () => {
  const all = expressions();
  expect(all.length).toBeGreaterThan(200);
  const faults: string[] = [];
  for (const [place, expression] of all) {
    const found = await fault(expression);
    if (found !== undefined) faults.push(`${place}: ${found}`);
  }
  expect(faults).toEqual([]);
}, 120_000);

test.each([/[ \t]+$/, /\s*;\s*/, /\beyJ[\w-]{6,}(?:\.[\w-]*){2,4}/g])(
  "detects the quadratic regular expression %p",
  async (expression) => {
    expect(await fault(expression, 3_000)).toBeDefined();
  },
  60_000,
);
