import { heapStats } from "bun:jsc";
import { expect, test } from "bun:test";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { DecodedRequest } from "../../inference/decoded-request.ts";
import { parsedRequest } from "./decode-request.ts";

const limits = { bodyBytes: 10e6, depth: 64, messages: 1_000 };

/** A body of which a tree takes many times its bytes. */
function treeOf(containers: number): ByteSpan {
  const messages = [{ role: "user", content: "Hi" }];
  return ByteSpan.of(JSON.stringify({ model: "m", messages, z: Array.from({ length: containers }, () => []) }));
}

test("what was parsed of a long body is not kept for as long as its request is under way", async () => {
  const underWay = Array.from({ length: 20 }, () => parsedRequest("chat", treeOf(100_000), limits));
  await new Promise(setImmediate);
  Bun.gc(true);
  const held = heapStats().heapSize;
  expect(underWay[0]?.body["model"]).toBe("m");
  expect(underWay[19]?.members.get("z")).toBeDefined();
  await new Promise(setImmediate);
  underWay.length = 0;
  Bun.gc(true);
  // Each tree is 3 MB or more; the bytes themselves are no part of the heap.
  expect(held - heapStats().heapSize).toBeLessThan(10e6);
});

test("requests that are read by turns are each read as they are", () => {
  const [one, other] = ["one", "other"].map((model) =>
    parsedRequest("chat", ByteSpan.of(JSON.stringify({ model, messages: [{ role: "user", content: model }] })), limits),
  ) as [DecodedRequest, DecodedRequest];
  for (const request of [one, other, one]) {
    expect(request.body["model"]).toBe(request.model);
    expect(JSON.parse(request.text)).toEqual(request.body);
    const { valueStart, valueEnd } = request.members.get("model") ?? { valueStart: 0, valueEnd: 0 };
    expect(request.text.slice(valueStart, valueEnd)).toBe(JSON.stringify(request.model));
  }
});
