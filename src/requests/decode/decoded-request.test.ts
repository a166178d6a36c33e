import { expect, test } from "bun:test";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { DecodedRequest } from "../decoded-request.ts";
import { parsedRequest } from "./decode-request.ts";

const limits = { bodyBytes: 10e6, depth: 64, messages: 1_000 };

/** Returns a body whose parsed tree takes many times its bytes. */
function treeOf(containers: number): ByteSpan {
  const messages = [{ role: "user", content: "Hi" }];
  return ByteSpan.of(JSON.stringify({ model: "m", messages, z: Array.from({ length: containers }, () => []) }));
}

test("frees the parsed tree of a long body while its request is under way", async () => {
  const trees: WeakRef<object>[] = [];
  const underWay = Array.from({ length: 20 }, () => {
    const request = parsedRequest("chat", treeOf(100_000), limits);
    trees.push(new WeakRef(request.body));
    return request;
  });
  await new Promise(setImmediate);
  Bun.gc(true);
  // The garbage collector scans the stack and may take a number there for an address, so a few trees may survive.
  expect(trees.filter((tree) => tree.deref() !== undefined).length).toBeLessThan(5);
  expect(underWay[0]?.body["model"]).toBe("m");
  expect(underWay[19]?.members.get("z")).toBeDefined();
});

test("returns the right body for requests that are read alternately", () => {
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

test("parses a long body once, for its checks", async () => {
  const fields = { safety_identifier: "ada", metadata: { session_id: "s" }, service_tier: "flex" };
  const messages = [{ role: "user", content: "x".repeat(100_000) }];
  const bytes = ByteSpan.of(JSON.stringify({ model: "m", messages, ...fields }));
  const request = parsedRequest("chat", bytes, limits);
  await new Promise(setImmediate);
  Object.defineProperty(request.bytes, "text", {
    get() {
      throw new Error("The body is parsed again.");
    },
  });
  expect(request.endUser).toBe("ada");
  expect(request.metadata).toEqual({ session_id: "s" });
  expect(request.askedTiers()).toEqual(["flex"]);
  expect(request.namesServers).toBe(false);
  expect(() => request.body).toThrow("The body is parsed again.");
});
