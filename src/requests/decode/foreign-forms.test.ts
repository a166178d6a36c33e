// Tests requests to chat completions in the form of Responses or Messages, as Cursor sends them.
import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { ValueMaker } from "../../../tests/support/value-maker.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { GatewayError } from "../../base/errors.ts";
import { responseRequest } from "../../wire/responses.ts";
import { decodeRequest } from "./decode-request.ts";
import { alternatives, inline, type Node } from "./json-schema.ts";

const limits = { bodyBytes: 1_000_000, depth: 64, messages: 100, refusedMembers: ["lora_path"] };
const sent = (body: object) => decodeRequest("chat", ByteSpan.of(JSON.stringify({ model: "m", ...body })), limits);
const parameters = { type: "object", properties: { path: { type: "string" } } };
const nested = { type: "function", function: { name: "read", description: "Reads.", parameters } };
const user = { role: "user", content: "Hi" };

describe("a body with input in place of messages", () => {
  test("reads a body with input as a chat with the same instructions, turns, calls, results, tools and options", () => {
    const request = sent({
      stream: true,
      stream_options: { include_usage: true },
      instructions: "Be short.",
      input: [
        {
          role: "user",
          content: [
            { type: "input_text", text: "Read a." },
            { type: "input_image", image_url: "data:," },
          ],
        },
        { type: "function_call", call_id: "c1", name: "read", arguments: '{"path":"a"}' },
        { type: "custom_tool_call", call_id: "c2", name: "ApplyPatch", input: "*** Begin Patch" },
        { type: "function_call_output", call_id: "c1", output: "42" },
        { type: "custom_tool_call_output", call_id: "c2", output: "done" },
        { role: "assistant", content: [{ type: "output_text", text: "It is 42." }] },
        { role: "user", content: "Thanks." },
      ],
      tools: [{ type: "function", name: "read", description: "Reads.", parameters }],
      tool_choice: { type: "function", name: "read" },
      ...{ max_output_tokens: 99, store: false, previous_response_id: null, truncation: "disabled", user: "u" },
      ...{ include: ["reasoning.encrypted_content"], reasoning: { effort: "medium", summary: "auto" } },
      text: { verbosity: "low", format: { type: "json_schema", name: "n", schema: parameters, strict: false } },
    });
    expect(request.body).toEqual({
      ...{ model: "m", stream: true, stream_options: { include_usage: true }, store: false, user: "u" },
      messages: [
        { role: "system", content: "Be short." },
        {
          role: "user",
          content: [
            { type: "text", text: "Read a." },
            { type: "image_url", image_url: { url: "data:," } },
          ],
        },
        {
          ...{ role: "assistant", content: null },
          tool_calls: [
            { id: "c1", type: "function", function: { name: "read", arguments: '{"path":"a"}' } },
            { id: "c2", type: "custom", custom: { name: "ApplyPatch", input: "*** Begin Patch" } },
          ],
        },
        { role: "tool", tool_call_id: "c1", content: "42" },
        { role: "tool", tool_call_id: "c2", content: "done" },
        { role: "assistant", content: "It is 42." },
        { role: "user", content: "Thanks." },
      ],
      tools: [nested],
      tool_choice: { type: "function", function: { name: "read" } },
      ...{ max_completion_tokens: 99, reasoning_effort: "medium", verbosity: "low" },
      response_format: { type: "json_schema", json_schema: { name: "n", schema: parameters, strict: false } },
    });
    expect(request).toMatchObject({ stream: true, tokenLimit: 99, hasMedia: true });
    expect(JSON.parse(request.bytes.text)).toEqual(request.body);
  });

  test("refuses a body with input by the name of a member that is faulty or known to Responses only", () => {
    for (const [body, reason] of [
      [{ input: "Hi", previous_response_id: "resp_1" }, "previous_response_id: is known to POST /v1/responses alone"],
      [{ input: "Hi", background: true }, "background: is known to POST /v1/responses alone"],
      [{ input: [user, { type: "web_search_call", id: "w" }] }, "input[1]: is known to POST /v1/responses alone"],
      [{ input: [{ ...user, content: 7 }] }, "input[0].content: must be"],
      [{ input: 7 }, "input: must be"],
      [{ input: [] }, "messages: must be an array of at least 1"],
      [{ input: "Hi", lora_path: "/x" }, "lora_path"],
      [{ input: "Hi", Max_tokens: 1 }, "Max_tokens"],
    ] as const) {
      expect(() => sent(body)).toThrow(reason);
    }
  });
});

test("nests tools in the form of Responses or Messages, and leaves others unchanged", () => {
  const format = { type: "grammar", syntax: "lark", definition: "start: /.+/" };
  const request = sent({
    messages: [user],
    tools: [
      nested,
      { type: "function", name: "read", description: "Reads.", parameters },
      { name: "read", description: "Reads.", input_schema: parameters },
      { type: "custom", name: "ApplyPatch", format },
      { type: "web_search_20250305", name: "web_search" },
    ],
    tool_choice: { type: "tool", name: "read" },
  });
  const { type, ...grammar } = format;
  expect(request.body["tools"]).toEqual([
    ...[nested, nested, nested],
    { type: "custom", custom: { name: "ApplyPatch", format: { type, grammar } } },
    { type: "web_search_20250305", name: "web_search" },
  ]);
  expect(request.body["tool_choice"]).toEqual({ type: "function", function: { name: "read" } });
});

test("keeps the bytes of a body in the form of chat completions", () => {
  const tools = [nested, { type: "custom", custom: { name: "ApplyPatch" } }];
  for (const more of [{}, { tools }, { input: "Hi" }, { tools: [{ type: "function" }] }]) {
    const text = JSON.stringify({ model: "m", messages: [user], ...more });
    expect(decodeRequest("chat", ByteSpan.of(text), limits).bytes.text).toBe(text);
  }
});

test("reads or refuses any request that fits Responses without an unexpected error", () => {
  const root = z.toJSONSchema(responseRequest, { io: "input" }) as Node;
  const options = alternatives(inline(root, root));
  const maker = new ValueMaker(7);
  let read = 0;
  for (let i = 0; i < 2_000; i++) {
    const text = JSON.stringify({ ...(maker.like(options) as object), model: "m" });
    try {
      decodeRequest("chat", ByteSpan.of(text), limits);
      read++;
    } catch (error) {
      expect(error).toBeInstanceOf(GatewayError);
    }
  }
  expect(read).toBeGreaterThan(20);
});
