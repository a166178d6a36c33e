// Tests that the scan of an answer finds the members that JSON.parse finds, and accepts no answer that it refuses.

import { describe, expect, test } from "bun:test";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { capacity } from "../../base/text/json-bytes.ts";
import { type ScannedAnswer, scanAnswer } from "./answer-scan.ts";
import { reportedUsage } from "./openai/usage.ts";

const usual = {
  id: "chatcmpl-1",
  object: "chat.completion",
  created: 1_800_000_000,
  model: "m",
  choices: [
    { index: 0, message: { role: "assistant", content: 'One "two"\n\u00e9 \u{1f600} \\ end' }, logprobs: null },
  ],
  usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
};
const members = ["id", "object", "created", "model", "choices", "usage", "error"] as const;

/** Scans an answer with other bytes before and behind it. */
function scanned(text: string): ScannedAnswer | undefined {
  const received = Buffer.from(`{}${text}"}`);
  return scanAnswer(new ByteSpan(received, 2, received.length - 2));
}

function scan(text: string): boolean {
  return scanned(text) !== undefined;
}

function found(text: string): ScannedAnswer {
  const answer = scanned(text);
  if (!answer) throw new Error(`Not vouched for: ${text}`);
  return answer;
}

function isObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}

test("finds members of an answer whatever is between them", () => {
  for (const indent of [undefined, 0, 2, "\t", "\r\n"] as const) {
    const text = JSON.stringify(usual, null, typeof indent === "string" ? "\t" : indent).replaceAll(
      "\n",
      indent === "\r\n" ? "\r\n" : "\n",
    );
    const bytes = Buffer.from(text);
    const answer = found(text);
    for (const member of members) {
      const value = bytes.toString("utf8", answer.startOf(member), answer.endOf(member));
      expect(value === "" ? undefined : JSON.parse(value)).toEqual(usual[member as "id"]);
    }
    expect(answer.parsedValueOf("usage")).toEqual(usual.usage);
    expect(answer.parsedValueOf("error")).toBe(undefined);
    expect(answer.firstByteOf("created")).toBe(0x31);
    expect(answer.firstByteOf("error")).toBe(0);
  }
});

test("keeps the results of one scan out of the next", () => {
  const text = JSON.stringify({ error: 1, ...usual });
  const before = found(text);
  const next = found('{"a":1}');
  for (const member of members) expect([next.startOf(member), next.endOf(member)]).toEqual([0, 0]);
  expect(text.slice(before.startOf("error"), before.endOf("error"))).toBe("1");
  expect(before.isText("model", "m")).toBe(true);
  expect(before.hasObjects("choices")).toBe(true);
  expect(before.parsedValueOf("usage")).toEqual(usual.usage);
  expect(before.usage?.completionTokens).toBe(4);
});

test("calls messages plain if each choice has one with a text, and a usual end", () => {
  const one = '{"message":{"content":"Hi"},"finish_reason":"stop"}';
  const twice = '{"message":{},"message":{},"finish_reason":"stop","finish_reason":"stop"}';
  for (const [choices, isPlain] of [
    [`[${one}]`, true],
    [`[ ${one} , ${one} ]`, true],
    ["[]", false],
    ['[{"message":{"content":"Hi"}}]', false],
    [`[${one},{"message":{}}]`, false],
    [`[{"finish_reason":"stop"},${one}]`, false],
    [`[${twice},{}]`, false],
    [`[{},${twice}]`, false],
    [`[${one},null]`, false],
    [`[${one}],"others":[${one}]`, true],
    [`[{}],"others":[${one}]`, false],
  ] as const) {
    expect([choices, found(`{"choices":${choices}}`).hasPlainMessages]).toEqual([choices, isPlain]);
  }
});

test("finds names only at the top level", () => {
  const answer = found('{"a":{"id":1},"b":[{"usage":2}],"c":"model","model":"x"}');
  expect(members.filter((member) => answer.startOf(member) > 0)).toEqual(["model"]);
});

test("leaves answers that parsers read differently to JSON.parse", () => {
  expect(scan('{"id":"a","id":"b"}')).toBe(false);
  expect(scan('{"usage":{},"a":1,"usage":null}')).toBe(false);
  expect(scan('{"a":{"id":1},"id":2}')).toBe(true);
});

test("leaves escaped names to JSON.parse", () => {
  expect(scan(String.raw`{"mod\u0065l":"x"}`)).toBe(false);
  expect(scan(String.raw`{"\u0065rror":{}}`)).toBe(false);
  expect(scan(String.raw`{"choices":[{"mod\u0065l":"x"}]}`)).toBe(true);
});

test("leaves answers that are too deep or too long to JSON.parse", () => {
  const nested = (depth: number) => `{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`;
  expect(scan(nested(29))).toBe(true);
  expect(scan(nested(30))).toBe(false);
  expect(scan(nested(20_000))).toBe(false);
  const long = (length: number) => `{"a":"${"x".repeat(length - 8)}"}`;
  expect(scan(long(capacity))).toBe(true);
  expect(scan(long(capacity + 1))).toBe(false);
  // A shorter answer must not read bytes that a longer one left in memory.
  for (let cut = 1; cut < 20; cut++) expect(scan(long(500).slice(0, -cut))).toBe(false);
});

describe("texts and lists", () => {
  test("distinguishes a text from all others", () => {
    for (const [json, text, same] of [
      ['"m"', "m", true],
      ['"m1"', "m", false],
      ['""', "", true],
      ['"m"', "n", false],
      ["7", "7", false],
      [String.raw`"\u006d"`, "m", false],
      [String.raw`"a\n"`, String.raw`a\n`, false],
      ['"é"', "é", false],
      ['"é"', "Ã©", false],
    ] as const) {
      expect([json, text, found(`{"model":${json}}`).isText("model", text)]).toEqual([json, text, same]);
    }
    expect(found("{}").isText("model", "")).toBe(false);
  });

  test("finds objects in a list that begins with an object", () => {
    for (const [json, filled] of [
      ["[1]", false],
      ["[null]", false],
      ["[ {} ]", true],
      ["[]", false],
      ["[ \n ]", false],
      ["{}", false],
      ['"[1]"', false],
    ] as const) {
      expect([json, found(`{"choices":${json}}`).hasObjects("choices")]).toEqual([json, filled]);
    }
  });
});

test("reads usage like a parser, without parsing if it is all numbers", () => {
  const counted = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 };
  const all = JSON.stringify(counted);
  for (const [usage, isCounted] of [
    [all, true],
    [JSON.stringify(counted, null, 2), true],
    ['{"total_tokens":7,"completion_tokens":0,"prompt_tokens":1e3}', true],
    // A vendor's own figure may count a part of the tokens, as DeepSeek's does.
    ['{"total_tokens":7,"prompt_cache_hit_tokens":1,"completion_tokens":0,"prompt_tokens":1e3}', false],
    ['{"total_tokens":7,"completion_tokens":9007199254740991,"prompt_tokens":0,"prompt_tokens":5}', true],
    // A larger total may include reasoning tokens beside both counts.
    [all.replace("7", "8"), false],
    [all.replace("7", "null"), false],
    [all.replace("3", "3.5"), false],
    [all.replace("3", "-3"), false],
    [all.replace("3", "9007199254740992"), false],
    [all.replace("3", '"3"'), false],
    [all.replace("prompt", "pr\\u006fmpt"), false],
    [all.replace("}", ',"estimated":true}'), false],
    [all.replace("}", ',"details":{"prompt_tokens":9}}'), false],
    ['{"prompt_tokens":3,"total_tokens":3}', false],
    ["{}", false],
    ["[]", false],
    ["null", false],
  ] as const) {
    const answer = found(`{"usage":${usage}}`);
    expect([usage, answer.usage]).toEqual([usage, isCounted ? reportedUsage(JSON.parse(usage)) : undefined]);
  }
  expect(found(all).usage).toBe(undefined);
});

describe("agreement with JSON.parse", () => {
  const values = [
    ..."0 -0 1 -1 10 0.5 -0.5 1e5 1E+5 1e-5 1.5e5 01 -01 00 1. .5 - + +1 1e 1e+ 1.e5 0x1 1_0 --1 NaN Infinity".split(
      " ",
    ),
    ..."true false null tru nul True nulll truefalse undefined".split(" "),
    ...['""', '"a', 'a"', "'a'", '"a\nb"', '"a\tb"', '"a\u0000b"', '"a\u001fb"', '"a\u007fb"', '"\u2028"', '"a""b"'],
    ...String.raw`"\"" "\\" "\/" "\b\f\n\r\t" "\u00e9" "\uD800" "\u00g0" "\u00e" "\x41" "\a" "\" "\\\" "\\\\"`.split(
      " ",
    ),
    ...["[]", "[1]", "[1,2]", "[,1]", "[1,]", "[1 2]", "[1", "1]", "[}", "[[]", "[]]"],
    ...[
      "{}",
      '{"a":1}',
      '{"a":1,}',
      '{,"a":1}',
      '{"a"}',
      '{"a":}',
      "{a:1}",
      '{"a":1 "b":2}',
      '{"a":1',
      '{"a"::1}',
      "{]",
    ],
    ...["", " ", ",", ":", "\u00a0", "\ufeff", "/**/1", "1//"],
  ];

  test.each(values)("accepts exactly the answers that JSON.parse accepts, with %j as a value, and alone", (value) => {
    for (const text of [
      `{"a":${value}}`,
      `{"a":[${value}]}`,
      `{"a": ${value} ,"b":1}`,
      value,
      `${value}{}`,
      `{}${value}`,
    ]) {
      expect([text, scan(text)]).toEqual([text, isObject(text)]);
    }
  });

  test("refuses every answer with changed, added or missing parts that JSON.parse refuses", () => {
    const alphabet = '{}[]",:\\ \n\t\r0123456789eE+-.truefalsn\u0001/bu\u007f';
    const seeds = [
      JSON.stringify(usual),
      JSON.stringify(usual, null, 1),
      '{"a":[1,-0.5e+3,{"b":null},[],{}],"x":"\\u00e9"}',
    ];
    // A seeded generator, so that a failure repeats in the next run.
    let state = 1;
    const next = (below: number) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    const accepted: string[] = [];
    let valid = 0;
    for (let round = 0; round < 60_000; round++) {
      let text = seeds[round % seeds.length] ?? "";
      for (let changes = 1 + next(3); changes > 0; changes--) {
        const at = next(text.length);
        const character = alphabet[next(alphabet.length)] ?? "";
        text = text.slice(0, at) + ["", character][next(2)] + text.slice(at + next(2));
      }
      const isGood = isObject(text);
      if (isGood) valid++;
      if (scan(text) && !isGood) accepted.push(text);
    }
    expect(accepted).toEqual([]);
    expect(valid).toBeGreaterThan(1_000);
  });
});
