// Tests that the usage and guardrail headers of an inference answer are structured dictionaries of RFC 9651, for any
// amounts.
import { expect, test } from "bun:test";
import type { UsageEnd } from "../../domain/usage/usage.ts";
import { guardrailHeader, usageHeader } from "./inference-answer.ts";

type Amounts = Pick<UsageEnd, "promptTokens" | "completionTokens" | "nanoUsd"> & Partial<Pick<UsageEnd, "parts">>;
const written = (amounts: Amounts) => usageHeader(amounts as UsageEnd);

/** Parses a dictionary whose members are integers without parameters, by RFC 9651, 4.2.2 and 4.2.4. */
function readDictionary(text: string): Record<string, number> {
  const members: Record<string, number> = {};
  for (const member of text.split(/[ \t]*,[ \t]*/)) {
    const [, key = "", integer = ""] = /^([a-z*][a-z0-9_.*-]*)=(-?[0-9]{1,15})$/.exec(member) ?? [];
    if (key === "" || key in members) throw new Error(`${member} is no member`);
    members[key] = Number(integer);
  }
  return members;
}

const parts = { cachedTokens: 1, cacheWriteTokens: 2, reasoningTokens: 3 };

test("writes usage as a structured dictionary, with parts and cost if present", () => {
  expect(readDictionary(written({ promptTokens: 0, completionTokens: 0, nanoUsd: null }))).toEqual({
    ...{ prompt_tokens: 0, completion_tokens: 0 },
  });
  expect(readDictionary(written({ promptTokens: 12, completionTokens: 5, nanoUsd: 570_000, parts }))).toEqual({
    ...{ prompt_tokens: 12, cached_tokens: 1, cache_write_tokens: 2 },
    ...{ completion_tokens: 5, reasoning_tokens: 3, nano_usd: 570_000 },
  });
});

test("writes the largest structured integer for amounts above it", () => {
  const largest = 999_999_999_999_999;
  for (const amount of [largest, 1_000_000_000_000_000, Number.MAX_SAFE_INTEGER, 1e21]) {
    const all = { cachedTokens: amount, cacheWriteTokens: amount, reasoningTokens: amount };
    const text = written({ promptTokens: amount, completionTokens: amount, nanoUsd: amount, parts: all });
    expect(Object.values(readDictionary(text))).toEqual(Array(6).fill(largest));
  }
});

test("writes guardrail findings as a structured dictionary", () => {
  const found = (action: "mask" | "block" | "note", count: number) => ({ action, count }) as never;
  expect(readDictionary(guardrailHeader([found("mask", 2), found("note", 1), found("mask", 3)]))).toEqual({
    ...{ masked: 5, noted: 1 },
  });
});
