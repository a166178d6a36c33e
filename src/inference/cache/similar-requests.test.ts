// Requests that mean the same: found by their vectors, bounded, and missed where no vector comes in time.
import { afterEach, expect, jest, test } from "bun:test";
import { heldBytes } from "../../base/bytes/held-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { OwnCall } from "../own-calls.ts";
import { SimilarRequests } from "./similar-requests.ts";

const asker = () => ({
  ...{ holder: heldBytes.visitors, cancellation: new Cancellation(), neverLeaves: true, priority: "high" as const },
});
const answer = (...embedding: unknown[]) => JSON.stringify({ data: [{ embedding }] });

afterEach(() => {
  jest.useRealTimers();
});

function answering(text: string) {
  const calls: OwnCall[] = [];
  const similar = new SimilarRequests({
    ask: async (call) => {
      calls.push(call);
      return text;
    },
  });
  return { similar, calls };
}

test("a vector is asked of the model, never further than the request may go, as urgently, and brought to length 1", async () => {
  const { similar, calls } = answering(answer(3, 4));
  expect(await similar.vectorOf("text", "embedder", asker())).toEqual(Float32Array.of(0.6, 0.8));
  expect(calls).toMatchObject([{ purpose: "cache", operation: "embedding", neverLeaves: true, priority: "high" }]);
  expect(JSON.parse(calls[0]?.body ?? "")).toEqual({ model: "embedder", input: "text" });
});

test.each([
  ["no JSON", "oops"],
  ["no vector", "{}"],
  ["no direction", answer(0, 0)],
  ["a vector of no numbers", answer("a", "b")],
  ["a vector that is too long", answer(...Array.from({ length: 8_193 }, () => 1))],
])("an answer with %s is none", async (_, text) => {
  expect(await answering(text).similar.vectorOf("text", "m", asker())).toBeUndefined();
});

test("a model that does not answer within a second is not waited for, nor after the client has left", async () => {
  jest.useFakeTimers();
  const similar = new SimilarRequests({
    ask: ({ cancellation }) => new Promise((_, reject) => cancellation.onCancel(() => reject(cancellation.reason))),
  });
  const late = similar.vectorOf("text", "m", asker());
  jest.advanceTimersByTime(1_000);
  expect(await late).toBeUndefined();
  const left = asker();
  const gone = similar.vectorOf("text", "m", left);
  left.cancellation.cancel();
  expect(await gone).toBeUndefined();
});

test("the nearest of a partition is found from the threshold on, and none of another partition or length", () => {
  const { similar } = answering("");
  similar.add("p", Float32Array.of(1, 0), "east");
  similar.add("p", Float32Array.of(0, 1), "north");
  similar.add("q", Float32Array.of(0.8, 0.6), "other");
  const vector = Float32Array.of(0.8, 0.6);
  expect(similar.nearest("p", vector, 0.79)).toBe("east");
  expect(similar.nearest("p", vector, 0.81)).toBeUndefined();
  expect(similar.nearest("none", vector, 0.1)).toBeUndefined();
  expect(similar.nearest("p", Float32Array.of(1), 0.1)).toBeUndefined();
});

test("a partition holds 256, the oldest goes first, all of them 64 MiB, and the same request once", () => {
  const { similar } = answering("");
  for (let i = 0; i < 300; i++) similar.add("p", Float32Array.of(1, 0), `request ${i}`);
  const one = 8 + 256;
  expect(similar.bytes).toBe(256 * one);
  similar.add("p", Float32Array.of(1, 0), "request 299");
  expect(similar.bytes).toBe(256 * one);
  for (let i = 0; i < 3_000; i++) similar.add(`partition ${i}`, new Float32Array(8_192), "request");
  expect(similar.bytes).toBeLessThanOrEqual(64 * 1024 * 1024);
  expect(similar.nearest("p", Float32Array.of(1, 0), 0.5)).toBeUndefined();
  similar.clear();
  expect(similar.bytes).toBe(0);
});
