// Tests the recorded steps of a request: limited in number, without secrets, and in times relative to the request.
import { expect, test } from "bun:test";
import { decodedRequest } from "../../tests/support/decoded-request.ts";
import { redactSecrets } from "../domain/redaction.ts";
import { maxReasonLength, maxSteps } from "../domain/usage/trail.ts";
import { TrailWriter, type Tried } from "./trail-writer.ts";

const apiKey = "not-of-any-known-form-0123456789";
const engine = {
  name: "gpu-1",
  redact: (text: string) => redactSecrets(text, [apiKey]),
  models: async () => [],
  send: () => Promise.reject(new Error("not asked")),
};
const deployment = { engine, model: "m:7b", weight: 1 };

function reasonOf(said: string, content = "tell me a story about the sea"): string | null | undefined {
  const writer = new TrailWriter(decodedRequest({ messages: [{ role: "user", content }] }), 0);
  writer.add({ deployment, model: "m", result: "refused", said }, 1);
  return writer.trail[0]?.reason;
}

test("writes the times of each step from the start of the request, and the names involved", () => {
  const writer = new TrailWriter(decodedRequest({ messages: [] }), 1_000);
  writer.add({ deployment, model: "m", result: "refused", status: 500, sinceMs: 1_010 }, 1_052);
  writer.add({ model: "m", result: "queue_full" }, 1_060);
  expect(writer.trail).toEqual([
    {
      ...{ upstream: "gpu-1", upstreamModel: "m:7b", model: "m", result: "refused", status: 500, reason: null },
      ...{ startedMs: 10, durationMs: 42 },
    },
    {
      ...{ upstream: null, upstreamModel: null, model: "m", result: "queue_full", status: null, reason: null },
      ...{ startedMs: 60, durationMs: 0 },
    },
  ]);
});

test("removes credentials and the prompt from a reason, and bounds its length", () => {
  const known = `gpu-1: cannot reach http://user:pa55word@10.0.0.7:8000 with Bearer abcdefgh12345678 or ${apiKey}`;
  expect(reasonOf(known)).toBe("cannot reach http://[redacted]@10.0.0.7:8000 with Bearer [redacted] or [redacted]");
  expect(reasonOf("cannot tell me a story about the sea now")).toBe("cannot […] now");
  expect(reasonOf("x y ".repeat(200))).toHaveLength(maxReasonLength);
  expect(reasonOf("a\u0000b\u001b[31m\n c")).toBe("a b [31m c");
  expect(reasonOf(" \n ")).toBeNull();
});

test("returns only known phrases of a message, whatever the request's own trail keeps", () => {
  const writer = new TrailWriter(decodedRequest({ messages: [] }), 0);
  const add = (said: string) => writer.add({ deployment, model: "m", result: "refused", said }, 1);
  expect(add("gpu-1: CUDA out of memory for the patient")).toBe("CUDA out of memory …");
  expect(add("The patient has a fever")).toBeNull();
  expect(writer.trail.map(({ reason }) => reason)).toEqual([
    "CUDA out of memory for the patient",
    "The patient has a fever",
  ]);
});

test("omits the model server's message if the request is too large to compare with it", () => {
  const reason = reasonOf("something that the prompt may have", "x".repeat(70_000));
  expect(reason).toStartWith("Not shown: the request is too large");
});

test("keeps the first steps and the last of a very long trail, and counts the omitted ones", () => {
  const writer = new TrailWriter(decodedRequest({ messages: [] }), 0);
  const step = (status: number): Tried => ({ deployment, model: "m", result: "refused", status });
  for (let i = 0; i < 100; i++) writer.add(step(400 + i), i);
  expect(writer.trail.map(({ status }) => status)).toEqual([
    ...Array.from({ length: maxSteps - 1 }, (_, i) => 400 + i),
    499,
  ]);
  expect(writer.trail.map(({ leftOut }) => leftOut ?? 0)).toEqual([...Array(maxSteps - 1).fill(0), 100 - maxSteps]);
  // Only dropped steps in which a server was asked are counted.
  writer.add({ deployment, model: "m", result: "not_retried" }, 100);
  writer.add({ deployment, model: "m", result: "not_retried" }, 101);
  writer.add(step(500), 102);
  expect(writer.trail.at(-1)).toMatchObject({ status: 500, leftOut: 100 - maxSteps + 1 });
});
