// Tests cached answers in memory: within their limit, shared fairly, until they expire or are removed.
import { expect, test } from "bun:test";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { MemoryAnswers } from "./memory-answers.ts";

const usage = { promptTokens: 1, completionTokens: 1, estimated: false };

function memory(maxBytes: number) {
  const clock = manualClock();
  const answers = new MemoryAnswers({ clock, maxBytes });
  const place = (digest: string, accountId = "a", model = "m") => ({ digest, accountId, model });
  const write = (digest: string, accountId = "a", { length = 488, seconds = 60, model = "m" } = {}) => {
    const at = clock.nowSeconds();
    const answer = { bytes: Buffer.alloc(length), usage, ignored: [], at, expiresAt: at + seconds };
    answers.write(place(digest, accountId, model), answer, answers.read(place(digest, accountId)).mark);
  };
  const has = (digest: string, accountId = "a") => answers.read(place(digest, accountId)).answer !== undefined;
  return { answers, clock, place, write, has };
}

test("evicts the least recently used answer when full, and stores none above the capacity", () => {
  const { answers, write, has } = memory(3_000);
  for (const digest of ["1", "2", "3"]) write(digest);
  expect(has("1")).toBe(true);
  write("4");
  expect([has("1"), has("2"), has("3"), has("4")]).toEqual([true, false, true, true]);
  write("5", "a", { length: 3_000 });
  expect(has("5")).toBe(false);
  expect(answers.bytes).toBeLessThanOrEqual(3_000);
});

test("evicts an account's own answers first when that account stores many", () => {
  const { write, has } = memory(10_000);
  write("mine", "small");
  for (let i = 0; i < 100; i++) write(String(i), "large");
  expect(has("mine", "small")).toBe(true);
  expect(has("99", "large")).toBe(true);
});

test("does not return an answer of another account under the same digest", () => {
  const { write, has } = memory(10_000);
  write("1", "a");
  expect(has("1", "b")).toBe(false);
});

test("does not return an expired answer, and frees its bytes at a later write", () => {
  const { answers, clock, write, has } = memory(100_000);
  for (let i = 0; i < 20; i++) write(String(i), `account ${i % 3}`, { seconds: 10 });
  clock.advance(10_000);
  expect(has("0", "account 0")).toBe(false);
  for (let i = 0; i < 10; i++) write("new", "another");
  expect(answers.bytes).toBe(1_000);
});

test("drops cleared answers, and stores none that were requested before the clearing", async () => {
  const { answers, place, write, has } = memory(100_000);
  write("1", "a");
  write("2", "a", { model: "n" });
  write("3", "b");
  const { mark } = answers.read(place("4"));
  await answers.forget({ accountId: "a", model: "m" });
  expect([has("1"), has("2"), has("3", "b")]).toEqual([false, true, true]);
  answers.write(place("4"), { bytes: Buffer.alloc(1), usage, ignored: [], at: 0, expiresAt: 2e9 }, mark);
  expect(has("4")).toBe(false);
  await answers.forget({});
  expect([has("2"), has("3", "b"), answers.bytes]).toEqual([false, false, 0]);
});

test("counts cached bytes in the total without using up the bytes for requests", () => {
  const before = { cache: bufferedBytes.byKind.cache, held: bufferedBytes.total };
  const { answers, write } = memory(100_000);
  write("1");
  expect(bufferedBytes.byKind.cache - before.cache).toBe(1_000);
  expect(bufferedBytes.total).toBe(before.held);
  answers.close();
  expect(bufferedBytes.byKind.cache).toBe(before.cache);
});
