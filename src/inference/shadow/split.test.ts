// Tests the split of a model's requests: a conversation stays with one model, each model gets its share, and few
// conversations move.
import { expect, test } from "bun:test";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { principalFor } from "../../../tests/support/principal.ts";
import type { Model } from "../../domain/models/model.ts";
import type { SplitPart } from "../../domain/models/policies/traffic.ts";
import type { Principal } from "../../domain/principal.ts";
import { conversationOf, partOf, splitOf } from "./split.ts";

const many = 100_000;
const conversations = Array.from({ length: many }, (_, at) => `acct_1 user ${at}`);

function chosen(parts: readonly SplitPart[]): string[] {
  return conversations.map((conversation) => partOf("a", parts, conversation));
}

function shareOf(model: string, all: readonly string[]): number {
  return (100 * all.filter((one) => one === model).length) / all.length;
}

test("gives each part its percentage of the conversations, within 1", () => {
  const parts = [
    { model: "b", percent: 20 },
    { model: "c", percent: 5 },
    { model: "d", percent: 0.5 },
  ];
  const all = chosen(parts);
  for (const { model, percent } of parts) expect(Math.abs(shareOf(model, all) - percent)).toBeLessThan(1);
  expect(Math.abs(shareOf("a", all) - 74.5)).toBeLessThan(1);
  expect(new Set(chosen([{ model: "b", percent: 100 }]))).toEqual(new Set(["b"]));
});

test("moves only the difference to or from a part when its share changes", () => {
  const before = chosen([{ model: "b", percent: 10 }]);
  const after = chosen([{ model: "b", percent: 25 }]);
  const moved = before.flatMap((from, at) => (from === after[at] ? [] : [`${from} ${after[at]}`]));
  expect(new Set(moved)).toEqual(new Set(["a b"]));
  expect(Math.abs((100 * moved.length) / many - 15)).toBeLessThan(1);
});

test("takes a growing share partly from each other part, and moves no conversation out of it", () => {
  const others = [
    { model: "c", percent: 20 },
    { model: "d", percent: 20 },
  ];
  const before = chosen([{ model: "b", percent: 10 }, ...others]);
  const after = chosen([{ model: "b", percent: 20 }, ...others]);
  expect(before.every((from, at) => from !== "b" || after[at] === "b")).toBeTrue();
  const moved = before.filter((from, at) => from !== after[at]).length;
  expect((100 * moved) / many).toBeLessThan(16);
});

test("moves different conversations for two models with the same parts", () => {
  const parts = [{ model: "b", percent: 50 }];
  const alike = conversations.filter((one) => (partOf("a", parts, one) === "b") === (partOf("x", parts, one) === "b"));
  expect(Math.abs(alike.length / many - 0.5)).toBeLessThan(0.02);
});

test("assigns all turns of a conversation alike, by the client's id or by its beginning", () => {
  const first = { role: "user", content: "Hello" };
  const more = [first, { role: "assistant", content: "Hi" }, { role: "user", content: "And now?" }];
  const of = (body: Record<string, unknown>, account = "acct_1") => conversationOf(decodedRequest(body), account);
  expect(of({ messages: more })).toBe(of({ messages: [first] }));
  expect(of({ messages: [{ role: "user", content: "Hello!" }] })).not.toBe(of({ messages: [first] }));
  expect(of({ messages: [first] }, "acct_2")).not.toBe(of({ messages: [first] }));
  for (const name of ["prompt_cache_key", "user", "safety_identifier"]) {
    expect(of({ messages: more, [name]: "x" })).toBe(
      of({ messages: [{ role: "user", content: "Else" }], [name]: "x" }),
    );
    expect(of({ messages: more, [name]: "x" })).not.toBe(of({ messages: more, [name]: "y" }));
  }
});

test("assigns all turns of a stored conversation alike, whatever they say", () => {
  const turn = (input: string, conversationId: string) => {
    const request = decodedRequest({ input }, "response");
    request.goesOn = { keptAfter: null, previousId: null, conversationId, input: [] };
    return conversationOf(request, "acct_1");
  };
  expect(turn("Hello", "conv_1")).toBe(turn("And now?", "conv_1"));
  expect(turn("Hello", "conv_1")).not.toBe(turn("Hello", "conv_2"));
});

function modelOf(id: string, changes: Partial<Model> = {}): Model {
  return {
    ...{ id, created: 1, ownedBy: "o", capabilities: undefined, context: undefined, price: undefined },
    ...{ environments: ["live"] as const, deployments: [] },
    ...changes,
  };
}

function answering(part: Partial<Model>, principal: Partial<Principal> = {}, operation: "chat" | "embedding" = "chat") {
  const asked = modelOf("a");
  const other = modelOf("b", part);
  const catalog = {
    find: () => asked,
    get: (id: string) => (id === "b" ? other : undefined),
    whenComplete: async () => {},
  };
  const body = operation === "chat" ? { messages: [{ role: "user", content: "Hello" }] } : { input: "Hello" };
  const call = { request: decodedRequest(body, operation), principal: principalFor(principal) };
  return splitOf(asked, [{ model: "b", percent: 100 }], call, catalog).id;
}

test("uses a part for keys that may use the requested model, if the part can and may serve the request", () => {
  expect(answering({})).toBe("b");
  expect(answering({}, { modelAccess: { models: [["a"]], neverLeaves: false } })).toBe("b");
  expect(answering({}, {}, "embedding")).toBe("a");
  expect(answering({ environments: ["test"] })).toBe("a");
  expect(answering({ capabilities: { chat: false } })).toBe("a");
  expect(answering({}, { modelAccess: { models: [], neverLeaves: true } })).toBe("a");
});
