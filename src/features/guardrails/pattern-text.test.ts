import { expect, test } from "bun:test";
import { PatternScan } from "../../base/patterns/pattern-scan.ts";
import { PatternSet } from "../../base/patterns/pattern-set.ts";
import { type PatternNode, readPattern } from "../../base/patterns/pattern-syntax.ts";
import { type SecretRule, secretRules } from "../../domain/secret-rules/secret-rules.ts";
import { JsonText, type PatternStage, PatternText } from "./pattern-text.ts";

const set = new PatternSet(secretRules);

/** Numbers from 0 to 1, the same at each run. */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const random = seeded(20_260_728);
const below = (count: number) => Math.floor(random() * count);
const pick = <One>(many: readonly One[]): One => many[below(many.length)] as One;

/** A text that the pattern matches, of the shorter ones. */
function sampleOf(node: PatternNode): string {
  switch (node.type) {
    case "all":
      return node.parts.map(sampleOf).join("");
    case "either":
      return sampleOf(pick(node.parts));
    case "repeat":
      return Array.from({ length: node.least + below(Math.min(node.most - node.least, 3) + 1) }, () =>
        sampleOf(node.part),
      ).join("");
    case "assertion":
      return "";
    case "units": {
      const at = below(node.units.length / 2) * 2;
      const [first = 0, last = 0] = [node.units[at], node.units[at + 1]];
      return String.fromCharCode(first + below(Math.min(last, 126) - first + 1));
    }
  }
}

const valid: Readonly<Record<string, readonly string[]>> = {
  email: ["jo@example.com", "a.b+c@mail.example.co.uk"],
  phone: ["+49 30 901820", "+1-202-555-0142", "(212) 555-0142", "212-555-0142"],
  card: ["4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005"],
  iban: ["DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432"],
  "private-key": [`-----BEGIN PRIVATE KEY-----\n${"MIIEvQIBADANBg+/\n".repeat(9)}-----END PRIVATE KEY-----`],
  "azure-client-secret": [`Ab1${"8Q~"}${"abcdefghij_klmno.pqrstuvwxyz-1234"}`],
  ip: ["192.0.2.17", "2001:db8::8a2e:370:7334", "2001:db8:0:0:0:0:0:1"],
};

function exampleOf({ name, pattern }: SecretRule): string {
  const known = valid[name];
  return known ? pick(known) : sampleOf(readPattern(pattern)).replace(/[^\w]$/, "a");
}

function stage(action: "mask" | "block"): PatternStage {
  return {
    scan: new PatternScan(set),
    found: (rule) => (action === "mask" ? { text: `[${rule}]` } : "ends"),
    release: () => {},
  };
}

/** Cut at random places. */
function fed(text: { feed(piece: string): string; end(): string }, whole: string): string {
  let given = "";
  for (let at = 0; at < whole.length; ) {
    const length = 1 + below(pick([1, 4, 20, 200]));
    given += text.feed(whole.slice(at, at + length));
    at += length;
  }
  return given + text.end();
}

const words = [
  "the",
  "key",
  "is",
  "a@",
  "4111",
  "DE89",
  "AKIA",
  "ghp_",
  "—",
  "größer",
  "\n",
  '"x"',
  "1.2.3",
  "::",
  "😀",
];

function textWith(examples: readonly string[]): string {
  const parts = examples.flatMap((example) => [...Array.from({ length: below(8) }, () => pick(words)), example]);
  return [...parts, pick(words)].join(" ");
}

test("masks 8,000 texts the same however they are cut, with no piece of a secret left", () => {
  for (let count = 0; count < 8_000; count++) {
    const examples = Array.from({ length: below(3) }, () => exampleOf(pick(secretRules)));
    const text = textWith(examples);
    const whole = new PatternText(stage("mask"));
    const masked = whole.feed(text) + whole.end();
    expect(fed(new PatternText(stage("mask")), text)).toBe(masked);
    for (const example of examples) expect(masked).not.toContain(example);
    const blocking = new PatternText(stage("block"));
    const passed = blocking.feed(text) + blocking.end();
    expect(fed(new PatternText(stage("block")), text)).toBe(passed);
    expect(text.startsWith(passed)).toBe(true);
  }
});

test("keeps 3,000 JSON objects valid however they are cut, and masks their strings alone", () => {
  const maskedOf = (text: string) => {
    const whole = new PatternText(stage("mask"));
    return whole.feed(text) + whole.end();
  };
  for (let count = 0; count < 3_000; count++) {
    const example = exampleOf(pick(secretRules));
    const text = textWith([example]);
    const value = { a: text, n: [1, -2.5e3, true, null], deep: { [pick(words)]: [example, "", '\\ " \u0001'] } };
    const json = JSON.stringify(value, null, below(3));
    const given = fed(new JsonText(stage("mask")), json);
    const parsed = JSON.parse(given);
    expect(parsed.a).toBe(maskedOf(text));
    expect(parsed.n).toEqual([1, -2.5e3, true, null]);
    const plain = JSON.stringify({ a: "so — so", b: "\u00e9\\n\\u0041" });
    expect(fed(new JsonText(stage("mask")), plain)).toBe(plain);
  }
});

test.each(secretRules.map((rule) => [rule.name, rule] as const))("finds %s by the rule of that name", (name, rule) => {
  for (let count = 0; count < 5; count++) {
    const scan = new PatternScan(new PatternSet([rule]));
    const found = [...scan.feed(`so ${exampleOf(rule)} it`), ...scan.end()].filter((one) => one.found);
    expect(found.map((one) => one.found?.name)).toEqual([name]);
  }
});

test.each([
  "Version 1.2.3 of 2026-07-28, at 12:30:45, costs 1,234.56.",
  "4111 1111 1111 1112 is no card, DE88 3704 0044 0532 0130 00 no IBAN, 127.0.0.1 and 0.0.0.0 nobody's address.",
  "git b58d3f102cf3a2c84cb7f923d05c25c9b1aed84b, uuid 01a21fdb-7c2c-75ee-9055-5b55c8adf5ad, std::vector, @user, a@b",
  "sk-short, AKIA, ghp_abc, eyJhbGciOi, 300.1.2.3, 555-0142, 1 000 000 000 000",
])("finds nothing in %p", (text) => {
  const guarded = new PatternText(stage("mask"));
  expect(guarded.feed(text) + guarded.end()).toBe(text);
});

test("passes text without a possible match at once, and holds only a possible beginning", () => {
  const scan = new PatternScan(set);
  const passed = scan.feed("Hello, world. ");
  expect(passed.map(({ text }) => text).join("")).toBe("Hello, world. ");
  scan.feed("write to jo");
  expect(scan.bufferedLength).toBe("jo".length);
  scan.feed(`${"a".repeat(100)} `);
  expect(scan.bufferedLength).toBe(0);
  scan.feed(`-----BEGIN PRIVATE KEY-----${"A".repeat(200_000)}`);
  expect(scan.bufferedLength).toBeLessThanOrEqual(16_384);
});

test.each([
  ["one letter", "a".repeat(1_000_000)],
  ["beginnings of keys", "-----BEGIN PRIVATE KEY-----".repeat(37_000)],
  ["beginnings of addresses", "a.b@".repeat(250_000)],
  ["colons", "a1:".repeat(333_333)],
  ["wrong IBANs", "DE89 3704 0044 0532 0130 01 ".repeat(36_000)],
])("scans a megabyte of %s within a few seconds", (_, text) => {
  const scan = new PatternScan(set);
  const from = performance.now();
  scan.feed(text);
  scan.end();
  expect(performance.now() - from).toBeLessThan(5_000);
});
