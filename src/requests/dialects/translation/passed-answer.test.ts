// Tests that an answer in the client's format stays unchanged, except for members that the gateway sets.
import { expect, test } from "bun:test";
import { completeResponse, completeUsage } from "../../../../tests/support/complete-response.ts";
import { decodedRequest } from "../../../../tests/support/decoded-request.ts";
import { ValueMaker } from "../../../../tests/support/value-maker.ts";
import { ByteSpan } from "../../../base/bytes/byte-span.ts";
import type { AnswerNames, Serving } from "../answer.ts";
import { dialects } from "../dialects.ts";

const engine = { name: "e", redact: (text: string) => text, models: async () => [] } as never;
const serving: Serving = { model: { id: "m", context: undefined }, deployment: { engine } };
const answer = { ...completeResponse, id: "resp_up", model: "m", output: [] };

function read(reported: object, names: Partial<AnswerNames>) {
  const { response } = dialects;
  const request = decodedRequest({ input: "Hi" }, "response");
  const bytes = ByteSpan.of(Buffer.from(JSON.stringify(reported, null, 1)));
  return response.readAnswer(bytes, request, serving, { id: "resp_own", created: 1, ownId: false, ...names });
}

const membersOf = (isKept: boolean, from?: { previousId: string | null; conversationId: string | null }) =>
  dialects.response.kept?.members(isKept, from);

test("forwards an answer byte for byte if it already has the gateway's values", () => {
  expect(read(answer, { members: membersOf(false) }).text).toBe(JSON.stringify(answer, null, 1));
});

test("gives a stored answer the gateway's id, and names its storage and its predecessor", () => {
  const members = membersOf(true, { previousId: "resp_0", conversationId: null });
  const own = JSON.parse(read(answer, { ownId: true, members }).text) as object;
  expect(own).toEqual({ ...answer, id: "resp_own", store: true, previous_response_id: "resp_0" });
  const conversation = membersOf(true, { previousId: null, conversationId: "conv_1" });
  expect(JSON.parse(read(answer, { ownId: true, members: conversation }).text)).toMatchObject({
    conversation: { id: "conv_1" },
  });
});

test("removes a server's own claims about storage and conversations", () => {
  const reported = { ...answer, store: true, previous_response_id: "resp_theirs", conversation: { id: "conv_theirs" } };
  expect(JSON.parse(read(reported, { members: membersOf(false) }).text)).toEqual({ ...answer, conversation: null });
});

/** A member with an escaped name, so that the byte scan does not accept the answer. */
const beside = String.raw`,"\u0078":0}`;
const besideInAnswer = /,"(?:\\u0078|x)":0(?=[,}])/;

const textPart = { type: "output_text", text: "Hi", annotations: [], logprobs: [] };
const message = { id: "msg_1", type: "message", role: "assistant", status: "completed", content: [textPart] };
const tool = { type: "function", name: "look", description: null, parameters: {}, strict: true };

/** Possible values of each member of an answer, by format; each test answer has one value of each row. */
const variations: Readonly<Record<"response" | "message", Readonly<Record<string, readonly unknown[]>>>> = {
  response: {
    id: ["resp_up", undefined, 7],
    object: ["response", "response", "other"],
    status: ["completed", "completed", "incomplete", "failed", "in_progress"],
    error: [undefined, null, { code: "server_error", message: "é" }],
    model: ["up", "m", undefined, "mödel"],
    output: [
      [{ ...message, content: [{ ...textPart, text: 'Grüße "{}' }] }],
      [{ type: "reasoning", id: "rs_1", summary: [] }, message],
      [{ ...message, status: null }],
      [{ ...message, id: undefined }],
      [{ ...message, content: [{ ...textPart, annotations: undefined }] }],
      [{ ...message, content: [textPart, { type: "refusal", refusal: "No." }, { ...textPart, text: undefined }] }],
      [message, { type: "reasoning", id: "rs_1", summary: [], content: null }],
      [{ type: "reasoning", summary: [] }, message],
      [{ type: "unheard_of" }],
      [{ type: "message", content: [{ type: "output_text", text: 'Grüße "{}' }] }],
      [{ type: "message", content: [{ type: "output_text", text: "long ".repeat(400) }] }],
      [{ type: "function_call", call_id: "c", name: "f", arguments: "{}" }],
      [{ type: "web_search_call", action: { type: "search" } }],
      [],
    ],
    usage: [
      completeUsage,
      { ...completeUsage, input_tokens_details: { cached_tokens: 2, cache_write_tokens: 3 }, cost: 0.002 },
      { ...completeUsage, total_tokens: undefined },
      { ...completeUsage, output_tokens_details: {} },
      { input_tokens: 30, output_tokens: 9, total_tokens: 39 },
      { input_tokens: 30, output_tokens: 9, input_tokens_details: { cached_tokens: 20, cache_write_tokens: 3 } },
      { input_tokens: 30, output_tokens: 9, output_tokens_details: { reasoning_tokens: 4 }, cost: 0.002 },
      { input_tokens: 30, output_tokens: 1 },
      { input_tokens: 30 },
      null,
      undefined,
    ],
    service_tier: [undefined, null, "default", "flex", "Priorité"],
    type: [undefined, null, "error"],
    store: [undefined, false, true, null],
    previous_response_id: [undefined, null, "resp_0"],
    conversation: [undefined, null, { id: "conv" }],
    temperature: [1, undefined, null],
    metadata: [{}, null, undefined],
    background: [false, false, null],
    tools: [[], [tool, { type: "web_search" }], [tool, { ...tool, strict: undefined }], [{ type: "function" }], null],
    text: [
      { format: { type: "text" } },
      undefined,
      ...[{}, null, { format: null }, { format: { type: "text" }, verbosity: null }],
      { format: { type: "json_schema", name: "n", schema: {}, strict: null } },
      { format: { type: "json_schema", name: "n", schema: {}, description: null, strict: true } },
    ],
    reasoning: [{ effort: "low", summary: null }, null, {}, { effort: null }, undefined],
  },
  message: {
    id: ["msg_up", undefined],
    type: ["message", "message", "message", "error", undefined],
    error: [undefined, null, { type: "overloaded_error", message: "é" }, "too much"],
    object: [undefined, null, "error"],
    model: ["up", "m", undefined],
    content: [
      [{ type: "text", text: "Grüße" }],
      [{ type: "tool_use", id: "t", name: "f", input: {} }],
      [{ type: "text", text: "long ".repeat(400) }],
      [],
    ],
    stop_reason: ["end_turn", "tool_use", "max_tokens", "refusal", null, undefined, ""],
    usage: [
      { input_tokens: 30, output_tokens: 9 },
      { input_tokens: 3, output_tokens: 9, cache_read_input_tokens: 20, cache_creation_input_tokens: 5 },
      { input_tokens: 30, output_tokens: 9, service_tier: "batch", server_tool_use: { web_search_requests: 2 } },
      { input_tokens: 30, output_tokens: 9, service_tier: "Priorité", inference_geo: "us" },
      { input_tokens: 30, output_tokens: 0 },
      { output_tokens: 3 },
      undefined,
    ],
  },
};

test.each(["response", "message"] as const)(
  "gives a whole answer of %s the same bytes by scan as by parsing",
  (operation) => {
    const maker = new ValueMaker(6);
    const request = decodedRequest(
      { input: "Hi", messages: [{ role: "user", content: "Hi" }], max_tokens: 9 },
      operation,
    );
    const outcomeOf = (text: string, names: Partial<AnswerNames>) => {
      try {
        const own = { id: "own", created: 1, ownId: false, ...names };
        const read = dialects[operation].readAnswer(ByteSpan.of(`  ${text}`), request, serving, own);
        const sent = typeof read.body === "string" ? read.body : read.body.solid.text;
        expect(read.text).toBe(sent);
        return { sent: sent.replace(besideInAnswer, ""), usage: read.usage, isWhole: typeof read.body !== "string" };
      } catch (error) {
        return { sent: String(error), usage: undefined, isWhole: false };
      }
    };
    let quick = 0;
    for (let i = 0; i < 3_000; i++) {
      const rows = Object.entries(variations[operation]);
      const members = rows.map(([name, values]) => [name, maker.pick(maker.chance(0.8) ? values.slice(0, 2) : values)]);
      const text = JSON.stringify(Object.fromEntries(maker.chance(0.5) ? members : members.reverse()));
      const names = {
        ownId: maker.chance(0.1),
        members: operation === "response" ? membersOf(maker.chance(0.1)) : undefined,
      };
      const [one, other] = [outcomeOf(text, names), outcomeOf(text.replace(/}$/, beside), names)];
      expect({ text, sent: one.sent, usage: one.usage }).toEqual({ text, sent: other.sent, usage: other.usage });
      if (one.isWhole) quick++;
    }
    expect(quick).toBeGreaterThan(300);
  },
);
