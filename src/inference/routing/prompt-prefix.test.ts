// Tests the common beginning of prompts: separate for each account, tools first, however the texts are written in JSON.
import { expect, test } from "bun:test";
import { decodedRequest } from "../../../tests/support/decoded-request.ts";
import type { Operation } from "../../domain/models/operation.ts";
import { type PromptPrefix, promptPrefixOf } from "./prompt-prefix.ts";

function prefixOf(body: Record<string, unknown>, accountId = "a", operation: Operation = "chat", space = 0) {
  return promptPrefixOf(decodedRequest(body, operation, space), accountId) as PromptPrefix;
}

const long = (word: string, times = 300) => `${word} `.repeat(times);
const system = { role: "system", content: long("rules") };
const user = (content: unknown) => ({ role: "user", content });
const assistant = { role: "assistant", content: long("answer") };

const inCommon = (one: PromptPrefix, other: PromptPrefix) => {
  let count = 0;
  while (count < one.hashes.length && one.hashes[count] === other.hashes[count]) count++;
  return one.ends[count - 1] ?? 0;
};

test("shares all but less than one step of an earlier turn with a later one, and the same origin", () => {
  const first = prefixOf({ messages: [system, user(long("hello"))] });
  const second = prefixOf({ messages: [system, user(long("hello")), assistant, user("more")] }, "a", "chat", 2);
  expect(inCommon(first, second)).toBe(first.ends.at(-1) ?? 0);
  expect(first.length - inCommon(first, second)).toBeLessThan(512);
  expect([second.origin, second.originEnd]).toEqual([first.origin, first.originEnd]);
  expect([first.continues, second.continues]).toEqual([false, true]);
});

test("shares only the common beginning of two conversations", () => {
  const one = prefixOf({ messages: [system, user(long("red"))] });
  const other = prefixOf({ messages: [system, user(long("blue"))] });
  const shared = inCommon(one, other);
  expect(shared).toBeGreaterThan(system.content.length - 512);
  expect(shared).toBeLessThanOrEqual(system.content.length + 10);
  expect(one.origin).not.toBe(other.origin);
});

test("shares nothing between the equal prompts of two accounts", () => {
  const body = { messages: [system, user("hello")] };
  const [one, other] = [prefixOf(body, "a"), prefixOf(body, "b")];
  expect(one.hashes.filter((hash) => other.hashes.includes(hash))).toEqual([]);
  expect(one.origin).not.toBe(other.origin);
});

test("puts tools before messages wherever they stand; another tool changes the prefix", () => {
  const tools = [{ type: "function", function: { name: "find", description: long("finds") } }];
  const messages = [system, user("hello")];
  const before = prefixOf({ tools, messages });
  expect(prefixOf({ messages, tools }).hashes).toEqual(before.hashes);
  expect(inCommon(before, prefixOf({ messages }))).toBe(0);
  expect(inCommon(before, prefixOf({ tools: [...tools, ...tools], messages }))).toBeGreaterThan(500);
});

test("includes parts, images, calls and token ids in the prefix, but no settings", () => {
  const image = (url: string) => ({ type: "image_url", image_url: { url } });
  const one = prefixOf({ messages: [user([{ type: "text", text: "look" }, image(`data:${long("x")}`)])] });
  const other = prefixOf({ messages: [user([{ type: "text", text: "look" }, image(`data:${long("y")}`)])] });
  expect([one.hashes.length > 0, inCommon(one, other)]).toEqual([true, 0]);
  const call = (name: string) => ({
    role: "assistant",
    content: null,
    tool_calls: [{ function: { name: long(name) } }],
  });
  expect(inCommon(prefixOf({ messages: [call("a")] }), prefixOf({ messages: [call("b")] }))).toBe(0);
  const ids = Array.from({ length: 400 }, (_, index) => index);
  expect(prefixOf({ prompt: ids }, "a", "completion").hashes.length).toBe(2);
  expect(prefixOf({ messages: [system], temperature: 1 }).hashes).toEqual(prefixOf({ messages: [system] }).hashes);
});

test("makes no chain for short prompts or embeddings, and a bounded one for long prompts", () => {
  expect(prefixOf({ messages: [user("hello")] }).hashes).toEqual([]);
  expect(prefixOf({ input: long("text") }, "a", "embedding")).toBeUndefined();
  const longest = prefixOf({ messages: [user("x".repeat(5_000_000))] });
  expect([longest.hashes.length, longest.length]).toEqual([256, 5_000_000]);
});
