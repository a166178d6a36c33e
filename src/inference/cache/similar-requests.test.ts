// Tests how requests of the same meaning are found by their vectors, within limits, and missed if no vector comes in
// time.
import { afterEach, expect, jest, test } from "bun:test";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { OwnCall, OwnCalls } from "../own-calls.ts";
import { SimilarRequests } from "./similar-requests.ts";

const asker = () => ({
  ...{
    memoryAccount: bufferedBytes.visitors,
    cancellation: new Cancellation(),
    neverLeaves: true,
    priority: "high" as const,
  },
});
const answer = (...embedding: unknown[]) => JSON.stringify({ data: [{ embedding }] });

afterEach(() => {
  jest.useRealTimers();
});

const mebibytes = 1024 * 1024;

function asking(ask: OwnCalls["ask"], maxBytes = 16 * mebibytes) {
  const clock = manualClock();
  return { clock, similar: new SimilarRequests({ ownCalls: { ask }, clock, maxBytes }) };
}

function answering(text: string) {
  const calls: OwnCall[] = [];
  const { similar } = asking(async (call) => {
    calls.push(call);
    return text;
  });
  const add = (partition: string, vector: Float32Array, digest: string, accountId = "a", mark = similar.mark) =>
    similar.add({ partition, vector, mark }, { digest, accountId });
  return { similar, calls, add };
}

const never: OwnCalls["ask"] = ({ cancellation }) =>
  new Promise((_, reject) => cancellation.onCancel(() => reject(cancellation.reason)));

test("requests a normalized embedding with the access policy, priority and guardrails of the request", async () => {
  const { similar, calls } = answering(answer(3, 4));
  const guarded = { ...asker(), checkedBy: ["secrets"] };
  expect(await similar.vectorOf("text", "embedder", guarded)).toEqual(Float32Array.of(0.6, 0.8));
  const asked = { neverLeaves: true, priority: "high" as const, checkedBy: ["secrets"] };
  expect(calls).toMatchObject([{ purpose: "cache", operation: "embedding", ...asked }]);
  expect(JSON.parse(calls[0]?.body ?? "")).toEqual({ model: "embedder", input: "text" });
});

test.each([
  ["no JSON", "oops"],
  ["no vector", "{}"],
  ["no direction", answer(0, 0)],
  ["a vector of no numbers", answer("a", "b")],
  ["a vector that is not numbers alone, as of a model that made none", answer(1, null, 0.5)],
  ["vectors for each token", answer([1], [0.5])],
  ["a vector that is too long", answer(...Array.from({ length: 8_193 }, () => 1))],
])("rejects an embedding answer with %s", async (_, text) => {
  expect(await answering(text).similar.vectorOf("text", "m", asker())).toBeUndefined();
});

test("stops waiting for an embedding after one second, and when the client leaves", async () => {
  jest.useFakeTimers();
  const { similar, clock } = asking(never);
  const late = similar.vectorOf("text", "m", asker());
  jest.advanceTimersByTime(1_000);
  expect(await late).toBeUndefined();
  clock.advance(10_000);
  const left = asker();
  const gone = similar.vectorOf("text", "m", left);
  left.cancellation.cancel();
  expect(await gone).toBeUndefined();
});

test("pauses an embedding model that timed out, then tries it with one request until it answers", async () => {
  jest.useFakeTimers();
  let ask = never;
  let asked = 0;
  const { similar, clock } = asking((call) => {
    asked++;
    return ask(call);
  });
  const vectors = async (count: number, ms: number) => {
    const all = Array.from({ length: count }, () => similar.vectorOf("text", "m", asker()));
    jest.advanceTimersByTime(ms);
    const found = await Promise.all(all);
    return found.filter(Boolean).length;
  };
  expect(await vectors(1, 1_000)).toBe(0);
  expect(await vectors(20, 0)).toBe(0);
  expect(asked).toBe(1);
  clock.advance(10_000);
  expect(await vectors(20, 1_000)).toBe(0);
  ask = async () => answer(1, 0);
  clock.advance(10_000);
  expect(await vectors(20, 0)).toBe(1);
  expect(await vectors(20, 0)).toBe(20);
});

test("clears one account's entries, pending ones included, and keeps those of others", () => {
  const { similar, add } = answering("");
  const vector = Float32Array.of(1, 0);
  add("p", vector, "one", "a");
  add("q", vector, "two", "b");
  const { mark } = similar;
  similar.forget("a");
  add("p", vector, "late", "a", mark);
  expect([similar.nearest("p", vector, 0.5), similar.nearest("q", vector, 0.5)]).toEqual([undefined, "two"]);
  const { cache } = bufferedBytes.byKind;
  similar.forget();
  expect([similar.bytes, cache - bufferedBytes.byKind.cache]).toEqual([0, 264]);
});

test("finds the next nearest answer after the nearest one was removed", () => {
  const { similar, add } = answering("");
  add("p", Float32Array.of(1, 0), "nearest");
  add("p", Float32Array.of(0.8, 0.6), "next");
  similar.remove("p", "nearest");
  similar.remove("p", "nearest");
  expect(similar.nearest("p", Float32Array.of(1, 0), 0.5)).toBe("next");
  similar.remove("p", "next");
  expect(similar.bytes).toBe(0);
});

test("finds the nearest entry above the threshold in the same partition and of the same length", () => {
  const { similar, add } = answering("");
  add("p", Float32Array.of(1, 0), "east");
  add("p", Float32Array.of(0, 1), "north");
  add("q", Float32Array.of(0.8, 0.6), "other");
  const vector = Float32Array.of(0.8, 0.6);
  expect(similar.nearest("p", vector, 0.79)).toBe("east");
  expect(similar.nearest("p", vector, 0.81)).toBeUndefined();
  expect(similar.nearest("none", vector, 0.1)).toBeUndefined();
  expect(similar.nearest("p", Float32Array.of(1), 0.1)).toBeUndefined();
});

test("bounds a partition to 256 entries and all partitions to 16 MiB, evicting the oldest", () => {
  const { similar, add } = answering("");
  for (let i = 0; i < 300; i++) add("p", Float32Array.of(1, 0), `request ${i}`);
  const one = 8 + 256;
  expect(similar.bytes).toBe(256 * one);
  add("p", Float32Array.of(1, 0), "request 299");
  expect(similar.bytes).toBe(256 * one);
  for (let i = 0; i < 1_000; i++) add(`partition ${i}`, new Float32Array(8_192), "request");
  expect(similar.bytes).toBeWithin(15 * mebibytes, 16 * mebibytes + 1);
  expect(similar.nearest("p", Float32Array.of(1, 0), 0.5)).toBeUndefined();
  similar.forget();
  expect(similar.bytes).toBe(0);
});
