// User codes: only letters that are told apart, all equally likely, and read however they are typed.
import { expect, test } from "bun:test";
import { newUserCode, normalizedUserCode } from "./user-code.ts";

test("formats a user code as two groups of four letters without vowels and digits", () => {
  for (let n = 0; n < 200; n++) expect(newUserCode()).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
});

test("chooses every letter of a user code with equal probability", () => {
  const counts = new Map<string, number>();
  for (let n = 0; n < 5_000; n++) {
    for (const letter of newUserCode().replace("-", "")) counts.set(letter, (counts.get(letter) ?? 0) + 1);
  }
  expect(counts.size).toBe(20);
  // 2,000 expected; six standard deviations are about 260.
  for (const count of counts.values()) expect(Math.abs(count - 2_000)).toBeLessThan(300);
});

test("normalizes a user code in any case, with dashes and blanks", () => {
  const typed = ["BCDF-GHJK", "bcdfghjk", " bcdf ghjk\n", "B C D F – G H J K", "BCDF_GHJK", "bcdf.ghjk"];
  expect(typed.map(normalizedUserCode)).toEqual(typed.map(() => "BCDFGHJK"));
});

test.each(["", "BCDF-GHJ", "BCDF-GHJKL", "ACDF-GHJK", "BCDF-GHJ1", "BCDF'GHJK", `${"-".repeat(60)}BCDFGHJK`])(
  "rejects %j as a user code",
  (text) => {
    expect(normalizedUserCode(text)).toBeUndefined();
  },
);
