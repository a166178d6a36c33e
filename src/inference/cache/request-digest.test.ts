// Tests which changes of a request change its digest: those that an answer may depend on, and no others.
import { describe, expect, test } from "bun:test";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { Model } from "../../domain/models/model.ts";
import type { Operation } from "../../domain/models/operation.ts";
import { DecodedRequest } from "../../requests/decoded-request.ts";
import { dialects } from "../../requests/dialects/dialects.ts";
import { factsOf } from "../../requests/facts.ts";
import { questionOf } from "./question.ts";
import { isDeterministic, requestDigest } from "./request-digest.ts";

const key = new Uint8Array(32).fill(7);
const model: Model = {
  ...{ id: "m", created: 0, ownedBy: "", capabilities: undefined, context: undefined, price: undefined },
  ...{ environments: ["live"], deployments: [] },
};

function decoded(text: string, operation: Operation = "chat"): DecodedRequest {
  return new DecodedRequest(dialects[operation], ByteSpan.of(text), factsOf(dialects[operation], JSON.parse(text)));
}

function digest(request: DecodedRequest, around: Partial<Parameters<typeof requestDigest>[0]> = {}): string {
  return requestDigest({ request, model, accountId: "acct_1", environment: "live", ...around }, key);
}

const body = {
  messages: [
    { role: "system", content: 'Say "yes", or  no.' },
    { role: "user", content: 'x\\" y' },
  ],
  temperature: 0,
  seed: 1,
  tools: [{ type: "function", function: { name: "f", parameters: { a: 1, b: [1, 2.5, null] } } }],
};
const usual = digest(decodedRequest(body));

test("gives one digest whatever the order of top-level members and the blanks between values", () => {
  const reversed = Object.fromEntries(Object.entries(body).toReversed());
  expect(digest(decodedRequest(reversed))).toBe(usual);
  expect(digest(decodedRequest(body, "chat", 3))).toBe(usual);
  expect(digest(decoded(JSON.stringify({ model: "m", ...body }, null, "\t").replaceAll("\n", " \r\n")))).toBe(usual);
});

test("ignores user, metadata and model alias in the digest, except for responses, which repeat them", () => {
  const said = { user: "u", metadata: { a: "b" }, safety_identifier: "s", prompt_cache_key: "k", store: false };
  expect(digest(decodedRequest({ ...body, ...said, model: "alias" }))).toBe(usual);
  const response = { input: "x", store: false };
  const plain = digest(decodedRequest(response, "response"));
  for (const [name, value] of Object.entries(said)) {
    if (name === "store") continue;
    expect(digest(decodedRequest({ ...response, [name]: value }, "response"))).not.toBe(plain);
  }
});

test("gives another digest for any changed byte in a value and any added or removed member", () => {
  const { text } = decodedRequest(body);
  let changed = 0;
  for (let at = 0; at < text.length; at++) {
    for (const other of ["a", "7", " ", '"', "\\"]) {
      const mutated = text.slice(0, at) + other + text.slice(at + 1);
      let same: boolean;
      try {
        const value = JSON.parse(mutated);
        const { model: _, ...wanted } = value;
        // If JSON.stringify shows that the values are equal, the digests may be equal.
        same = JSON.stringify(wanted) === JSON.stringify(body);
      } catch {
        continue;
      }
      if (same) continue;
      changed++;
      expect(digest(decoded(mutated))).not.toBe(usual);
    }
  }
  expect(changed).toBeGreaterThan(100);
  for (const name of Object.keys(body)) {
    const { [name as keyof typeof body]: _, ...less } = body;
    if (name !== "messages") expect(digest(decodedRequest(less))).not.toBe(usual);
  }
  expect(digest(decodedRequest({ ...body, made_up: 1 }))).not.toBe(usual);
  expect(digest(decodedRequest({ ...body, service_tier: "flex" }))).not.toBe(usual);
});

test("distinguishes spellings of numbers and orders of members that a model sees", () => {
  const withSeed = (seed: string) => digest(decoded(`{"model":"m","messages":[],"seed":${seed}}`));
  expect(withSeed("9007199254740993")).not.toBe(withSeed("9007199254740992"));
  const withTool = (tool: string) => digest(decoded(`{"model":"m","messages":[],"tools":[${tool}]}`));
  expect(withTool('{"a":1,"b":2}')).not.toBe(withTool('{"b":2,"a":1}'));
});

describe("a differing", () => {
  const request = decodedRequest(body);
  const engine = { name: "e", send: () => Promise.reject(new Error()), models: async () => [], redact: String };
  const deployments = [{ engine, model: "other-file", weight: 1 }];
  test.each([
    ["account", digest(request, { accountId: "acct_2" })],
    ["environment", digest(request, { environment: "test" })],
    ["model", digest(request, { model: { ...model, id: "n" } })],
    ["model behind the same name", digest(request, { model: { ...model, deployments } })],
    ["form of the answer", digest(decodedRequest({ ...body, stream: true }))],
    ["operation", digest(decodedRequest(body, "message"))],
    ["secret", requestDigest({ request, model, accountId: "acct_1", environment: "live" }, new Uint8Array(32))],
  ])("gives another digest for a differing %s", (_, other) => {
    expect(other).not.toBe(usual);
  });
});

test("gives another digest for differing Anthropic beta headers", () => {
  const request = decodedRequest({ messages: [], max_tokens: 1 }, "message");
  const without = digest(request);
  request.messageHeaders = { version: "2023-06-01", betas: "b" };
  expect(digest(request)).not.toBe(without);
});

test("calls a request deterministic at temperature 0 or if nothing is generated", () => {
  for (const [temperature, expected] of [
    [0, true],
    [0.0, true],
    [0.1, false],
    [null, false],
  ] as const) {
    expect(isDeterministic(decodedRequest({ messages: [], temperature }))).toBe(expected);
  }
  expect(isDeterministic(decodedRequest({ messages: [] }))).toBe(false);
  expect(isDeterministic(decodedRequest({ input: "x" }, "embedding"))).toBe(true);
});

test("digests a very long value as written and does not parse a long body to find its question", () => {
  const long = { messages: [{ role: "user", content: "x".repeat(300_000) }] };
  expect(digest(decodedRequest(long, "chat", 2))).not.toBe(digest(decodedRequest(long)));
  expect(questionOf(decodedRequest({ messages: [...long.messages, { role: "user", content: "q" }] }))).toBeUndefined();
});

test("takes the last user message as the question if it is plain text and not long", () => {
  const system = { role: "system", content: "s" };
  const of = (...messages: unknown[]) => questionOf(decodedRequest({ messages }))?.text;
  expect(of(system, { role: "user", content: "q" })).toBe("q");
  expect(of({ role: "user", content: [{ type: "text", text: "q" }] })).toBe("q");
  expect(of(system)).toBeUndefined();
  expect(of({ role: "user", content: "q" }, { role: "assistant", content: "a" })).toBeUndefined();
  expect(of({ role: "user", content: [{ type: "image_url", image_url: { url: "x" } }] })).toBeUndefined();
  expect(of({ role: "user", content: "q".repeat(8_001) })).toBeUndefined();
  expect(of({ role: "user", content: " " })).toBeUndefined();
  expect(questionOf(decodedRequest({ input: "q" }, "response"))?.text).toBe("q");
  expect(questionOf(decodedRequest({ prompt: "q" }, "completion"))).toBeUndefined();
});

test("includes everything but the question's text in the digest of its surroundings", () => {
  const around = (content: string, more: Record<string, unknown> = {}) => {
    const request = decodedRequest({ messages: [{ role: "user", content, ...more }], seed: 1 });
    const question = questionOf(request);
    return requestDigest({ request, model, accountId: "a", environment: "live" }, key, question?.around);
  };
  expect(around("one")).toBe(around("two"));
  expect(around("one", { name: "n" })).not.toBe(around("two"));
});
