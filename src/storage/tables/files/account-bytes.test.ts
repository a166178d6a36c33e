import { expect, test } from "bun:test";
import { AccountBytes } from "./account-bytes.ts";

let reads = 0;
const sum = (bytes: number, files: number) => () => {
  reads++;
  return Promise.resolve({ bytes, files });
};

test("sums very many files rarely, and counts the space taken in between", async () => {
  let nowMs = 0;
  reads = 0;
  const account = new AccountBytes(() => nowMs);
  const take = (bytes: number) => account.take("acct_1", bytes, 1_000, sum(900, 64_000));
  expect(await Promise.all([await take(40), await take(40)])).toEqual([true, true]);
  expect(reads).toBe(1);
  expect(await take(40)).toBe(false);
  nowMs += 100;
  expect(await take(40)).toBe(true);
  expect(reads).toBe(2);
  nowMs += 1_000;
  expect(await take(40)).toBe(true);
  expect(reads).toBe(3);
});

test("sums a few files each time", async () => {
  reads = 0;
  const account = new AccountBytes(() => 0);
  for (const bytes of [400, 0, 400]) expect(await account.take("acct_1", 500, 1_000, sum(bytes, 9_999))).toBe(true);
  expect(await account.take("acct_1", 500, 1_000, sum(501, 9_999))).toBe(false);
  expect(reads).toBe(4);
});
