// Prompts and answers of a trace: all forms that a request may have, never more than there is room for, never a key.
import { expect, test } from "bun:test";
import { generateApiKey } from "../domain/api-key.ts";
import { redactCredentials } from "../domain/redaction.ts";
import type { TracedRequest } from "../domain/usage/trace.ts";
import { dialects } from "../requests/dialects/dialects.ts";
import { inputMessages, maxContent, outputMessages, StreamedContent } from "./content.ts";

const read = (text: string) => JSON.parse(text) as unknown;
const chat = (messages: unknown): TracedRequest => ({
  operation: "chat",
  model: "m",
  stream: false,
  body: { messages },
});

test("records messages of every kind as parts, without pictures and sounds", () => {
  const call = { id: "call_1", type: "function", function: { name: "f", arguments: '{"a":1}' } };
  const messages = [
    { role: "system", content: "s" },
    {
      role: "user",
      content: [
        { type: "text", text: "look" },
        { type: "image_url", image_url: { url: "data:CANARY" } },
      ],
    },
    { role: "assistant", content: null, tool_calls: [call] },
    { role: "tool", tool_call_id: "call_1", content: "42" },
  ];
  expect(read(inputMessages(chat(messages), redactCredentials))).toEqual([
    { role: "system", parts: [{ type: "text", content: "s" }] },
    { role: "user", parts: [{ type: "text", content: "look" }, { type: "image_url" }] },
    { role: "assistant", parts: [{ type: "tool_call", id: "call_1", name: "f", arguments: '{"a":1}' }] },
    { role: "tool", parts: [{ type: "tool_call_response", id: "call_1", response: "42" }] },
  ]);
});

test.each([
  ["completion", { prompt: "a" }, ["a"]],
  ["completion", { prompt: ["a", "b"] }, ["a", "b"]],
  ["completion", { prompt: [1, 2, 3] }, []],
  ["embedding", { input: ["x"] }, ["x"]],
  ["embedding", { input: [[1]] }, []],
] as const)("reads the texts of %s %j as %j", (operation, body, texts) => {
  const messages = texts.map((content) => ({ role: "user", parts: [{ type: "text", content }] }));
  expect(read(inputMessages({ operation, model: "m", stream: false, body }, redactCredentials))).toEqual(messages);
});

test("keeps the end of a too long content, and removes keys", () => {
  const key = generateApiKey("live");
  const messages = [
    { role: "user", content: "first" },
    { role: "user", content: "x".repeat(maxContent) },
    { role: "user", content: `last ${key}` },
  ];
  const text = inputMessages(chat(messages), redactCredentials);
  expect(text).not.toContain("first");
  expect(text).toContain("last sk_live_hr_…");
  expect(text).not.toContain(key);
  expect(text.length).toBeLessThan(maxContent + 500);
  // One that stands where the text is cut.
  const cut = inputMessages(
    chat([{ role: "user", content: `${"y".repeat(maxContent - 20)}${key}` }]),
    redactCredentials,
  );
  expect(cut).not.toContain(key.slice(11, 15));
  const many = Array.from({ length: 100_000 }, () => ({ role: "user", content: "" }));
  expect((read(inputMessages(chat(many), redactCredentials)) as unknown[]).length).toBeLessThan(1_000);
});

test.each([[undefined], [null], ["text"], [7], [[]], [{}], [{ choices: 7 }], [{ choices: [null, 1, { message: 2 }] }]])(
  "records any answer without an error: %j",
  (answer) => {
    expect(Array.isArray(read(outputMessages(dialects.chat.answered(answer), redactCredentials)))).toBe(true);
  },
);

test("collects a stream's text and calls by choice within the same bound", () => {
  const event = (choices: unknown) => `data: ${JSON.stringify({ choices })}\n\n`;
  const content = new StreamedContent(dialects.chat.streamed);
  content.add(`${event([{ index: 1, delta: { content: "b" } }])}: keep-alive\n\ndata: [DONE]\n\ndata: {no json\n\n`);
  content.add(
    event([{ index: 0, delta: { tool_calls: [{ index: 0, id: "c", function: { name: "f", arguments: '{"a' } }] } }]),
  );
  content.add(event([{ index: 0, delta: { tool_calls: [{ index: 0, function: { arguments: '":1}' } }] } }]));
  content.add(event([{ index: 1, delta: { content: "B" }, finish_reason: "stop" }]));
  expect(read(content.messages(redactCredentials))).toEqual([
    { role: "assistant", parts: [{ type: "text", content: "bB" }], finish_reason: "stop" },
    { role: "assistant", parts: [{ type: "tool_call", id: "c", name: "f", arguments: '{"a":1}' }] },
  ]);

  const long = new StreamedContent(dialects.chat.streamed);
  for (let i = 0; i < 100; i++) long.add(event([{ index: 0, delta: { content: "x".repeat(1_000) } }]));
  expect(long.messages(redactCredentials).length).toBeLessThan(maxContent + 200);
  expect(long.messages(redactCredentials)).toContain("…");
});
