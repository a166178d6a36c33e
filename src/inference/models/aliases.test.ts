// Tests which model a name stands for: an exact alias comes before prefixes, and the longest prefix before others.
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { aliasPattern } from "../../domain/models/model-entry.ts";
import { Aliases } from "./aliases.ts";

describe("aliases", () => {
  test("prefers an exact alias to a prefix, and a longer prefix to a shorter one", () => {
    const aliases = new Aliases([
      { id: "any", aliases: ["*"] },
      { id: "big", aliases: ["claude-*", "gpt-5"] },
      { id: "small", aliases: ["claude-haiku-*", "claude-haiku-4-5-pinned"] },
      { id: "pinned", aliases: ["claude-haiku-4-5-20251001"] },
      { id: "plain" },
    ]);
    const names = [
      "gpt-5",
      "gpt-5-mini",
      "claude-",
      "claude-opus-5",
      "claude-haiku-4-5",
      "claude-haiku-4-5-20251001",
      "",
    ];
    expect(names.map((name) => aliases.idOf(name))).toEqual(["big", "any", "big", "big", "small", "pinned", "any"]);
  });

  test("resolves no alias for a name that matches no prefix", () => {
    const aliases = new Aliases([{ id: "m", aliases: ["gpt-5", "claude-*"] }]);
    for (const name of ["gpt-", "gpt-5x", "claude", "Claude-opus", "xclaude-"])
      expect(aliases.idOf(name)).toBeUndefined();
  });

  test("uses the first of two models with the same alias and reports the other", () => {
    const aliases = new Aliases([
      { id: "one", aliases: ["a", "b*"] },
      { id: "two", aliases: ["b*", "c", "a"] },
    ]);
    expect(["a", "bb", "c"].map((name) => aliases.idOf(name))).toEqual(["one", "one", "two"]);
    expect(aliases.withoutEffect(new Set(["c"]))).toEqual([
      { alias: "b*", model: "two", served_by: "one" },
      { alias: "a", model: "two", served_by: "one" },
      { alias: "c", model: "two", served_by: "c" },
    ]);
  });

  test("resolves a name like a search through all aliases", () => {
    const word = fc.stringMatching(/^[ab]{0,4}$/);
    const alias = fc.oneof(
      word,
      word.map((text) => `${text}*`),
    );
    fc.assert(
      fc.property(fc.uniqueArray(alias, { maxLength: 12 }), word, (names, name) => {
        const aliases = new Aliases(names.map((one) => ({ id: `of ${one}`, aliases: [one] })));
        const longest = names
          .filter((one) => one.endsWith("*") && name.startsWith(one.slice(0, -1)))
          .sort((a, b) => b.length - a.length)[0];
        const expected = names.includes(name) ? name : longest;
        expect(aliases.idOf(name)).toBe(expected === undefined ? undefined : `of ${expected}`);
      }),
    );
  });
});

test("accepts aliases of printable ASCII with at most one * at the end", () => {
  for (const alias of ["gpt-5", "claude-*", "*", "a/b:c", "(x)+,-.~!"]) expect(alias).toMatch(aliasPattern);
  for (const alias of ["", "**", "a*b", "*a", "a b", "a*b*", "naïve", "a\n", "a*\n"])
    expect(alias).not.toMatch(aliasPattern);
});
