// Passwords: argon2id, no shorter and no easier than told, and nobody learns from the time who has one.
import { expect, test } from "bun:test";
import { checkPassword, hashPassword, isOutdatedHash, verifyPassword } from "./passwords.ts";

const good = "correct horse battery";

test("hashes a password by argon2id with 19 MiB, two passes and a new salt", async () => {
  const [one, two] = await Promise.all([hashPassword(good), hashPassword(good)]);
  expect(one).toStartWith("$argon2id$v=19$m=19456,t=2,p=1$");
  expect(one).not.toBe(two);
  expect(await verifyPassword(good, one)).toBe(true);
  expect(await verifyPassword(`${good}!`, one)).toBe(false);
  expect(isOutdatedHash(one)).toBe(false);
});

test("accepts the same letters of a password in another Unicode form", async () => {
  const hash = await hashPassword("zwölf Zeichen lang".normalize("NFD"));
  expect(await verifyPassword("zwölf Zeichen lang".normalize("NFC"), hash)).toBe(true);
});

test("detects a hash with outdated parameters", async () => {
  const weaker = await Bun.password.hash(good, { algorithm: "argon2id", memoryCost: 8, timeCost: 1 });
  expect(isOutdatedHash(weaker)).toBe(true);
  expect(await verifyPassword(good, weaker)).toBe(true);
});

test("compares against no known hash as slowly as against a real one", async () => {
  const hash = await hashPassword(good);
  const timed = async (of: string | null | undefined) => {
    const times: number[] = [];
    for (let i = 0; i < 3; i++) {
      const start = performance.now();
      expect(await verifyPassword("not the password", of)).toBe(false);
      times.push(performance.now() - start);
    }
    return Math.min(...times);
  };
  const [known, nobody, none] = [await timed(hash), await timed(undefined), await timed(null)];
  for (const time of [nobody, none]) {
    expect(time).toBeGreaterThan(known / 3);
    expect(time).toBeLessThan(known * 3);
  }
});

test("hashes two passwords at a time, queues sixty, and refuses more with a time to retry", async () => {
  const hash = await Bun.password.hash(good, { algorithm: "argon2id", memoryCost: 8, timeCost: 1 });
  const outcomes = await Promise.allSettled(Array.from({ length: 70 }, () => verifyPassword(good, hash)));
  const refused = outcomes.filter((outcome) => outcome.status === "rejected");
  expect(refused).toHaveLength(8);
  expect(refused[0]?.reason).toMatchObject({ code: "service_unavailable", retryAfterSeconds: 2 });
  expect(outcomes.filter((outcome) => outcome.status === "fulfilled" && outcome.value)).toHaveLength(62);
  expect(await verifyPassword(good, hash)).toBe(true);
});

test.each([
  ["one of eleven characters", "eleven lett", "12 to 256 characters"],
  ["an empty one", "", "12 to 256 characters"],
  ["one of 257 characters", `${"abcdefgh".repeat(32)}i`, "12 to 256 characters"],
  ["one of a million characters", "x".repeat(1_000_000), "12 to 256 characters"],
  ["the e-mail address", "Ada@Example.com ", "is your e-mail address"],
  ["two letters again and again", "abababababababab", "repeats the same few characters"],
  ["a common one", "password1234", "one that many people use"],
  ["a common one, dressed up", "Pass Word-12345", "one that many people use"],
  ["digits in a row", "1234567890123456", "one that many people use"],
])("refuses a password and names the field: %s", (_what, password, why) => {
  expect(() => checkPassword(password, "ada@example.com")).toThrow(why);
  expect(() => checkPassword(password, "ada@example.com")).toThrow(/^password: /);
});

test.each([
  ["twelve characters", "twelve chars"],
  ["twelve characters of two code units each", "🐴🔋📎🧷🎈🪁🐴🔋📎🧷🎈🪁"],
  ["words", good],
  ["256 characters", "abcdefgh".repeat(32)],
])("accepts a password: %s", (_what, password) => {
  expect(checkPassword(password, "ada@example.com")).toBe(password);
});
