// The checks of the structure find each kind of fault that they are there for, planted in a copy of nothing else.
import { afterEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { checkComments, commentsOf, countedRooms, grantsText, readGrants } from "../../scripts/house/comments.ts";
import { checkCycles } from "../../scripts/house/cycles.ts";
import { checkDocuments } from "../../scripts/house/documents.ts";
import { checkFolders } from "../../scripts/house/folders.ts";
import { readSources } from "../../scripts/house/imports.ts";
import { checkLayers } from "../../scripts/house/layers.ts";
import { checkLongLived } from "../../scripts/house/long-lived.ts";
import { checkLua } from "../../scripts/house/lua.ts";
import { checkMoney } from "../../scripts/house/money.ts";
import { checkProse } from "../../scripts/house/prose.ts";
import { checkRefusedNames, checkRefusedWords } from "../../scripts/house/refused-words.ts";
import { layers, moneyRooms, timeRooms } from "../../scripts/house/table.ts";
import { checkTests } from "../../scripts/house/tests.ts";
import { checkTime } from "../../scripts/house/time.ts";

let root: string | undefined;

afterEach(() => {
  if (root !== undefined) rmSync(root, { recursive: true });
  root = undefined;
});

function planted(files: Readonly<Record<string, string>>) {
  root = mkdtempSync(join(tmpdir(), "headrace-house-"));
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return readSources(root, ["src", "web"]);
}

describe("the rule of layers", () => {
  const room = (name: string) => `src/${name}/x.ts`;
  const refused: [from: string, statement: string][] = [
    ...["doctor", "mail", "metrics", "logging", "storage", "policy", "cli"].map((name): [string, string] => [
      room("domain"),
      `import { x } from "../${name}/x.ts";`,
    ]),
    [room("domain"), 'import type { X } from "../people.ts";'],
    [room("domain"), 'export type { X } from "../governance.ts";'],
    [room("domain"), 'import {\n  a,\n  type B,\n} from "../doctor/x.ts";'],
    [room("domain"), 'const x = await import("../storage/x.ts");'],
    [room("domain"), 'new Worker(new URL("../storage/x.ts", import.meta.url));'],
    [room("domain"), 'import { readFileSync } from "node:fs";'],
    [room("http"), 'import { Database } from "bun:sqlite";'],
    [room("http"), 'import "../storage/x.ts";'],
    [room("policy"), 'import { x } from "../http/x.ts";'],
    [room("nodes/tunnel"), 'import { x } from "../../policy/x.ts";'],
    [room("engines"), 'import { x } from "node-llama-cpp";'],
    [room("doctor/clients"), 'import { x } from "../../http/x.ts";'],
    ["web/pages/keys/x.tsx", 'import { x } from "../usage/x.tsx";'],
    ["web/parts/x.tsx", 'import { x } from "../pages/keys/x.tsx";'],
    ["web/api/x.ts", 'import { x } from "../../src/domain/x.ts";'],
    ["src/features/guardrails/model.ts", 'import { x } from "./service.ts";'],
    ["src/features/guardrails/service.ts", 'import { x } from "./routes.ts";'],
    ["src/features/guardrails/service.ts", 'import { x } from "../other/model.ts";'],
    ["src/config/x.ts", 'import { x } from "../features/guardrails/service.ts";'],
  ];

  for (const [from, statement] of refused) {
    test(`refuses ${statement.replace(/\s+/g, " ")} in ${from} and names the allowed imports`, () => {
      const [finding, ...more] = checkLayers(planted({ [from]: `\n${statement}\n` }), layers);
      expect(finding).toMatch(new RegExp(`^${from}:\\d+: .* may not import .*: .+ It may import: .+\\.$`));
      expect(more).toEqual([]);
    });
  }

  test("refuses a folder that is missing in the table", () => {
    const [finding] = checkLayers(planted({ "src/helpers/x.ts": "" }), layers);
    expect(finding).toStartWith("src/helpers/x.ts: is in no room.");
  });

  test("allows imports of the table, extra ones in tests, and anything in comments", () => {
    const files = planted({
      "src/policy/x.ts":
        'import { createHmac } from "node:crypto";\nimport type { X } from "../domain/x.ts";\n// import { x } from "../http/x.ts";\n',
      "src/domain/x.test.ts": 'import { test } from "bun:test";\nimport { until } from "../../tests/support/x.ts";\n',
      "src/features/guardrails/routes.ts": 'import { x } from "./service.ts";\nimport { y } from "../../http/x.ts";\n',
      "src/config/y.ts": 'import { x } from "../features/guardrails/config.ts";\n',
      "web/pages/keys/x.tsx": 'import { y } from "./y.tsx";\nimport { x } from "../../parts/x.tsx";\n',
    });
    expect(checkLayers(files, layers)).toEqual([]);
  });
});

test("detects an import cycle by types alone and names it whole", () => {
  const files = planted({
    "src/domain/a.ts": 'import { b } from "./b.ts";\n',
    "src/domain/b.ts": 'import { c } from "./c.ts";\n',
    "src/domain/c.ts": 'import type { A } from "./a.ts";\n',
    "src/domain/d.ts": 'import { a } from "./a.ts";\n',
  });
  const [finding, ...more] = checkCycles(files, 0);
  expect(finding).toContain(": src/domain/a.ts, src/domain/b.ts, src/domain/c.ts.");
  expect(more).toEqual([]);
});

test("requires the number of allowed cycles to go down with the cycles", () => {
  expect(checkCycles(planted({ "src/domain/a.ts": "" }), 1)).toHaveLength(1);
});

test("refuses a 26th file in a folder, tests excluded, and requires grants to go down", () => {
  const names = Array.from({ length: 26 }, (_, index) => `src/mail/f${index}`);
  const files = planted(
    Object.fromEntries(names.flatMap((name) => [`${name}.ts`, `${name}.test.ts`].map((path) => [path, ""]))),
  );
  expect(checkFolders(files, {})).toEqual([expect.stringContaining("src/mail: has 26 files, and may have 25.")]);
  expect(checkFolders(files, { "src/mail": 26 })).toEqual([]);
  expect(checkFolders(files, { "src/mail": 27 })).toEqual([expect.stringContaining("goes down to that")]);
});

test("finds a broken path in a document", () => {
  planted({
    "src/mail/smtp.ts": "",
    "src/mail/README.md": "`smtp.ts` sends, `src/mail/smtp.ts` too, `pop.ts` receives.",
    "ARCHITECTURE.md": "`src/mail` and `src/mail/` send, `src/post` does not, `headrace.db` is data.",
  });
  expect(checkDocuments(root ?? "")).toEqual([
    expect.stringContaining("src/mail/README.md: names pop.ts"),
    expect.stringContaining("ARCHITECTURE.md: names src/post"),
  ]);
});

test("finds any reading of the time outside the clock", () => {
  const readings = ["performance.now()", "Date.now()", "new Date()"];
  const text = readings.map((reading) => `const x = ${reading};\n`).join("");
  const files = planted({ "src/policy/x.ts": text, "src/policy/x.test.ts": text, "src/cli/x.ts": text });
  expect(checkTime(files, timeRooms, [])).toEqual(
    readings.map((reading, index) => expect.stringContaining(`src/policy/x.ts:${index + 1}: ${reading} `)),
  );
  expect(checkTime(files, timeRooms, ["src/policy/x.ts"])).toEqual([]);
});

describe("the rule of money amounts", () => {
  for (const statement of [
    "sum.cost += row.cost;",
    "total = total + row.cost;",
    "const all = rows.reduce((sum, { cost }) => sum + cost, 0);",
    "const left = account.monthlySpend - used;",
    "const more = usd + 1;",
    "this.#costUsd -= 0.1;",
    "const text = `$" + "{one.cost + (two)}`;",
    "const part = row.nanoUsd * share;",
    "const usd = nanoUsd / 1e9;",
    "const half = 2 / heldNanoUsd;",
    "const nanoUsdPerUsd = 1e9;",
    "const amount = Number.parseFloat(text);",
  ]) {
    test(`refuses ${statement} by the rule of money`, () => {
      const findings = checkMoney(planted({ "src/policy/x.ts": `\n${statement}\n` }), moneyRooms);
      expect(findings.length).toBeGreaterThan(0);
      for (const finding of findings) expect(finding).toMatch(/^src\/policy\/x\.ts:2: .*\(src\/base\/money\.ts/);
    });
  }

  test("accepts whole nano-USD, rounded parts of them, text and conversions in the rule of money", () => {
    const allowed = `
      used.nanoUsd += more.nanoUsd;
      const held = usedNanoUsd + heldNanoUsd - minNanoUsd;
      sums.nanoUsd += Math.round(more.nanoUsd * part);
      const shown = { cost: usdOf(nanoUsd), spend: -1 };
      const cost = priced ? costOf(row) + 1 : null; // cost + cost
      const text = "cost + spend - usd";
      type Cost = number; const f = (cost: number) => cost;
    `;
    const files = planted({
      "src/policy/x.ts": allowed,
      "src/base/money.ts": "const nanoUsdPerUsd = 1e9;\nconst usd = nanoUsd / nanoUsdPerUsd;\n",
      "src/policy/x.test.ts": "const usd = one.cost + two.cost;\n",
    });
    expect(checkMoney(files, moneyRooms)).toEqual([]);
  });
});

describe("the rule of comments", () => {
  const path = "src/policy/limits/x.ts";
  const text = `// The leases of a worker
// and their ends.
const url = "https://example.com/"; // What a client sees.
/** Returns those of it that what is there has. */
const pattern = /[/*]/; const other = \`// none \${url}\`;
// biome-ignore lint/x: no comment
`;
  const openings = new Set(["the", "returns"]);
  const rooms = () => countedRooms(planted({ [path]: text }), openings);

  test("finds comments, and none inside strings and patterns", () => {
    expect(commentsOf(text).map(({ line, text: said }) => [line, said])).toEqual([
      [1, "The leases of a worker and their ends."],
      [3, "What a client sees."],
      [4, "Returns those of it that what is there has."],
    ]);
  });

  test("refuses more unlisted openings and pronouns in comments than a room's grant", () => {
    expect(checkComments(rooms(), new Map())).toEqual([
      expect.stringMatching(/^src\/policy\/limits: 1 comments that open with a word .* at most 0 are granted:$/),
      `  ${path}:3: What a client sees.`,
      expect.stringMatching(/^src\/policy\/limits: 1 comments of which 30 % or more are pronouns; at most 0/),
      `  ${path}:4: Returns those of it that what is there has.`,
    ]);
    expect(checkComments(rooms(), readGrants("src/policy/limits 1 1\n"))).toEqual([]);
  });

  test("requires a lower grant if a room's comments need less", () => {
    expect(checkComments(rooms(), readGrants("src/policy/limits 2 1\nsrc/gone 0 3\n"))).toHaveLength(2);
    expect(grantsText(readGrants("src/b 2 1\nsrc/gone 0 0\nsrc/a 0 3\n"))).toBe("src/a 0 3\nsrc/b 2 1\n");
  });
});

describe("the rule of renamed words", () => {
  test.each([
    ["servers of tools", "MCP server"],
    ["Kept answers", "response cache"],
    ["stand-in", "fallback"],
  ])("refuses %p in comments, texts and guides", (word, instead) => {
    const files = planted({ "src/policy/x.ts": `// It has ${word}.\nconst y = "${word} here";\n` });
    const guide = { path: "docs/x.md", text: `# Guide\n\nIt has ${word}.\n`, imports: [] };
    expect(checkRefusedWords(files, [guide])).toEqual(
      ["src/policy/x.ts:1", "src/policy/x.ts:2", "docs/x.md:3"].map(
        (at) => `${at}: says "${word}"; the word is "${instead}".`,
      ),
    );
  });

  test("accepts old words in code names, tests and data", () => {
    const files = planted({
      "src/policy/x.ts": 'log.warn("ledger_upkeep_failed"); const upkeepMs = [];\n',
      "src/policy/x.test.ts": "// A stand-in.\n",
      "src/domain/tools/server-rules.ts": "return `tool server of a seal`;\n",
    });
    expect(checkRefusedWords(files, [])).toEqual([]);
  });

  test.each([
    ["const toldUsage = 1;", "toldUsage", "reported, received or notified"],
    ["class A {\n  readonly #standing = 1;", "standing", "status, state or position"],
    ["function f({ standIns }: B) {}", "standIns", "fallback"],
    ["interface EventFollower {}", "EventFollower", "subscriber or observer"],
    ["interface A {\n  onNews(method: string): void;", "onNews", "notifications"],
    ["const f = (isUnderstated: boolean) => isUnderstated;", "isUnderstated", "underReported"],
  ])("refuses the name that %p declares", (code, name, instead) => {
    const line = code.split("\n").length;
    const file = { "src/policy/x.ts": `// told, standing, news\n/* const told = 1; */ ${code}\n` };
    expect(checkRefusedNames(planted(file))).toEqual([
      `src/policy/x.ts:${line + 1}: names "${name}"; the word is "${instead}".`,
    ]);
  });

  test("refuses names of files with renamed words", () => {
    const files = planted({ "src/policy/told-usage.ts": "", "src/policy/stand-in.test.ts": "const told = 1;\n" });
    expect(checkRefusedNames(files)).toEqual([
      `src/policy/stand-in.test.ts: a file is not named so; the word is "fallback".`,
      `src/policy/told-usage.ts: a file is not named so; the word is "reported, received or notified".`,
    ]);
  });

  test("accepts renamed words in texts of code, and names that are data", () => {
    const files = planted({
      "src/policy/x.ts": 'const text = `It was told: news, longstanding`;\nconst a = { responseFollower: "told" };\n',
    });
    expect(checkRefusedNames(files)).toEqual([]);
  });
});

describe("the rule of prose", () => {
  const room = "src/policy";
  const comments: [before: string, mark: string, word: string][] = [
    ["", "//", "Of"],
    ["", "/**", "As"],
    ["", "/**\n *", "Nor"],
    ["", "/*", "And"],
    ["const x = 1; ", "//", "Or"],
    ["interface X { ", "/**", "Null:"],
    ["f(", "/*", "None:"],
  ];

  for (const [before, mark, word] of comments) {
    test(`refuses a comment that begins with ${word}`, () => {
      const path = `${room}/x.ts`;
      const files = planted({ [path]: `const y = 0;\n${before}${mark} ${word} of it\n` });
      const refusal = new RegExp(`^${path}:[23]: begins with "${word}": a comment is `);
      expect(checkProse(files, {})).toEqual([expect.stringMatching(refusal)]);
    });
  }

  for (const [call, word] of [
    ['test("', "nor"],
    ["test.skipIf(quick)(`", "and"],
    ['test.each([1, 2])("', "but"],
    ['it(\n  "', "Or"],
  ]) {
    test(`refuses a test title that begins with ${word}, in ${JSON.stringify(call)}`, () => {
      const files = planted({ [`${room}/x.test.ts`]: `${call}${word} more", () => {});\n` });
      expect(checkProse(files, {})).toEqual([expect.stringContaining(": the name of a test is ")]);
    });
  }

  test("accepts whole comments, continued lines, other words and strings in code", () => {
    const lines = [
      "// The first line goes on here",
      "// Of all lines the second.",
      "/** Offers are none of ours, nor Android's. */",
      'const text = "// Of it"; const address = "http://x/ As it is";',
      'test("orders and nothing else", () => {});',
    ];
    expect(checkProse(planted({ [`${room}/x.test.ts`]: lines.join("\n") }), {})).toEqual([]);
  });

  test("has a grant for each room that goes down with its use", () => {
    const files = planted({ [`${room}/manage/x.ts`]: "// Of one.\n" });
    expect(checkProse(files, { "src/policy/manage": 1 })).toHaveLength(2);
    expect(checkProse(files, { [room]: 1 })).toEqual([]);
    expect(checkProse(files, { [room]: 2 })).toEqual([expect.stringContaining("goes down to that")]);
  });
});

describe("the rule of Lua scripts for Redis", () => {
  const first = { path: "src/limits/first.lua", text: "-- First.\nlocal function twice(x) return 2 * x end\n" };
  const second = (line: string) => ({ path: "src/limits/second.lua", text: `-- Second.\n\n${line}\n` });
  const found = (line: string) => checkLua([first, second(line)], [first.text + second(line).text]);

  test("allows names that an earlier Lua file declares and that Redis provides", () => {
    expect(found("return twice(tonumber(redis.call('GET', KEYS[1])))")).toEqual([]);
  });

  test("refuses undeclared names in a Lua script", () => {
    const finding = "src/limits/second.lua:3: thrice is declared nowhere in front of it.";
    expect(found("return thrice(2)")).toEqual([finding]);
    expect(found("thrice = 3")).toEqual([finding]);
    expect(checkLua([second("return twice(2)")], [second("return twice(2)").text])).toHaveLength(1);
  });

  test("refuses invalid Lua with file and line", () => {
    expect(found("return twice(2")).toEqual([expect.stringMatching(/^src\/limits\/second\.lua:\d: .*expected/)]);
  });

  test("checks every Lua script", () => {
    expect(checkLua([first, second("return 1")], [first.text])).toEqual([
      expect.stringContaining("src/limits/second.lua: is in no script"),
    ]);
  });
});

test("finds a test that sets the global time or casts its way in, however written", () => {
  const ways = [
    'spyOn(performance, "now")',
    'jest.spyOn(Date, "now")',
    "Date.now = () => 0",
    "performance.now = () => 0",
    "setSystemTime(0)",
    "{} as unknown as Log",
  ];
  const text = ways.map((way) => `const x = (${way});\n`).join("");
  const allowed = 'const x = performance.now();\nspyOn(log, "warn");\nconst y = {} as Log;\n';
  const files = planted({ "src/policy/x.test.ts": text, "src/policy/x.ts": text, "src/policy/y.test.ts": allowed });
  const lines = checkTests(files, []).map((finding) => /^src\/policy\/x\.test\.ts:(\d+): /.exec(finding)?.[1]);
  expect(lines.sort()).toEqual(ways.map((_, index) => String(index + 1)));
  expect(checkTests(files, ["src/policy/x.test.ts"])).toEqual([]);
  expect(checkTests(files, ["src/policy/x.test.ts", "src/policy/y.test.ts"])).toEqual([
    expect.stringContaining("src/policy/y.test.ts: tests from the outside"),
  ]);
});

describe("the rule of long-lived state", () => {
  test.each([
    "const timer = setInterval(() => {}, 1_000);",
    "new WebSocketLink(channel, {});",
    "Bun.listen({ port: 0 });",
    'Bun.spawn(["true"]);',
    "new Pending<number>(options, kind);",
    "const answer = { begin: (client) => pump(client) };",
  ])("refuses a file that has %s unless it is listed", (statement) => {
    const path = "src/http/api/x.ts";
    const files = planted({ [path]: `${statement}\n`, "src/http/api/plain.ts": "// setInterval( in a comment\n" });
    expect(checkLongLived(files, [], [])).toEqual([expect.stringContaining(`${path}: makes `)]);
    expect(checkLongLived(files, [["kind", { files: [path] }]], [])).toEqual([]);
    expect(checkLongLived(files, [], [path])).toEqual([]);
  });

  test("refuses a listed file that is gone", () => {
    const [finding] = checkLongLived(planted({ "src/x.ts": "" }), [], ["src/gone.ts"]);
    expect(finding).toContain("src/gone.ts: is listed");
  });
});
