// Tests requests for a model server that speaks Responses: stateless, and without silent losses.
import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../../base/errors.ts";
import { responseRequest } from "../../../wire/responses.ts";
import type {
  AnswerPart,
  Conversation,
  ConversationMessage,
  Part,
  Thinking,
  Tool,
} from "../conversation/conversation.ts";
import { writeRequest } from "./write-request.ts";

type Json = Record<string, unknown>;

const place = "messages[0]";
const empty: Conversation = { turns: [], tools: [], sampling: {}, stream: false, hints: {}, others: {} };
const tool: Tool = { kind: "function", name: "look", place: "tools[0]" };

function bodyOf(more: Partial<Conversation>): Json {
  const body: unknown = JSON.parse(writeRequest({ ...empty, ...more }, "m").body);
  // The gateway's own endpoint must accept the written request.
  return responseRequest.parse(body) as Json;
}

const leftOutOf = (more: Partial<Conversation>) => writeRequest({ ...empty, ...more }, "m").leftOut;
const inputOf = (...turns: ConversationMessage[]) => bodyOf({ turns })["input"] as Json[];
const assistant = (...parts: AnswerPart[]): ConversationMessage => ({ role: "assistant", parts, place });
const user = (...parts: Part[]): ConversationMessage => ({ role: "user", parts, place });
const call = (more: Partial<Extract<AnswerPart, { type: "call" }>> = {}): AnswerPart => {
  return { type: "call", callId: "c1", kind: "function", name: "look", input: "{}", ...more };
};

function refusal(more: Partial<Conversation>): GatewayError {
  try {
    bodyOf(more);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("not refused");
}

test("asks the server to store nothing and to return reasoning encrypted", () => {
  expect(bodyOf({ stream: true })).toEqual({
    ...{ model: "m", input: [], store: false, stream: true, include: ["reasoning.encrypted_content"] },
  });
});

describe("turns", () => {
  test("writes each call and each reasoning block as an item", () => {
    const said = assistant(
      { type: "reasoning", text: "Hm", isSummary: true, proof: { kind: "encrypted", data: "gAAA" } },
      { type: "text", text: "a" },
      { type: "refusal", text: "b" },
      call({ input: "" }),
      call({ callId: "c2", kind: "custom", name: "patch", input: "***", namespace: "files" }),
    );
    const results: ConversationMessage[] = [
      { role: "tool", kind: "custom", callId: "c2", parts: [], place },
      { role: "tool", kind: "function", callId: "c1", parts: [{ type: "text", text: "r" }], failed: true, place },
    ];
    expect(inputOf({ role: "system", parts: [{ type: "text", text: "s" }], place }, said, ...results)).toEqual([
      { type: "message", role: "system", content: [{ type: "input_text", text: "s" }] },
      { type: "reasoning", summary: [{ type: "summary_text", text: "Hm" }], encrypted_content: "gAAA" },
      {
        type: "message",
        role: "assistant",
        content: [
          { type: "output_text", text: "a" },
          { type: "refusal", refusal: "b" },
        ],
      },
      { type: "function_call", call_id: "c1", name: "look", arguments: "{}" },
      { type: "custom_tool_call", call_id: "c2", name: "patch", namespace: "files", input: "***" },
      { type: "function_call_output", call_id: "c1", output: "The tool failed: r" },
      { type: "custom_tool_call_output", call_id: "c2", output: "" },
    ]);
  });

  test("adds a result for each call, as the server refuses calls without one", () => {
    const items = inputOf(assistant(call()), user({ type: "text", text: "Go on." }));
    expect(items.map(({ type }) => type)).toEqual(["function_call", "function_call_output", "message"]);
  });

  test("keeps the parts of a result apart", () => {
    const parts: Part[] = [
      { type: "text", text: "a" },
      { type: "image", source: { kind: "url", url: "https://a.test/b.png" }, place },
    ];
    expect(
      inputOf(assistant(call()), { role: "tool", kind: "function", callId: "c1", parts, place })[1]?.["output"],
    ).toEqual([
      { type: "input_text", text: "a" },
      { type: "input_image", image_url: "https://a.test/b.png", detail: "auto" },
    ]);
  });

  test.each([
    ["text", { text: "Hm", isSummary: false }],
    ["a summary", { text: "Hm", isSummary: true }],
    ["another vendor's signature", { text: "Hm", isSummary: false, proof: { kind: "signature", data: "s" } }],
    ["another vendor's hidden text", { text: "", isSummary: false, proof: { kind: "redacted", data: "r" } }],
  ] as const)("leaves out reasoning that OpenAI refuses: %s alone", (_, reasoning) => {
    const items = inputOf(assistant({ type: "reasoning", ...reasoning }, { type: "text", text: "a" }));
    expect(items.map(({ type }) => type)).toEqual(["message"]);
  });

  test("writes files as data, as an address, or as their text", () => {
    const file = (source: Extract<Part, { type: "file" }>["source"], name?: string): Part => ({
      type: "file",
      source,
      name,
      place,
    });
    const data = { kind: "data", mediaType: "application/pdf", data: "AAAA" } as const;
    expect(
      inputOf(
        user(
          file(data, "Report"),
          file({ kind: "url", url: "https://a.test/a.pdf" }, "a"),
          file({ kind: "text", text: "t" }, "n"),
        ),
      )[0]?.["content"],
    ).toEqual([
      { type: "input_file", filename: "Report.pdf", file_data: "data:application/pdf;base64,AAAA" },
      { type: "input_file", file_url: "https://a.test/a.pdf", filename: "a" },
      { type: "input_text", text: "n:\nt" },
    ]);
    expect(refusal({ turns: [user(file({ kind: "id", id: "file_1" }))] }).param).toBe(place);
  });
});

describe("members", () => {
  test("writes output and sampling options", () => {
    expect(
      bodyOf({
        ...{
          tools: [tool],
          toolChoice: { type: "tool", kind: "function", name: "look" },
          parallelCalls: false,
          maxTokens: 9,
        },
        output: { type: "schema", name: "a", schema: { type: "object" } },
        sampling: { temperature: 0.5, topP: 0.9, logprobs: 2, verbosity: "low" },
        thinking: { effort: "low" },
        hints: { user: "u", serviceTier: "standard_only", promptCacheKey: "k", metadata: { a: "b" } },
      }),
    ).toMatchObject({
      tools: [{ type: "function", name: "look", parameters: { type: "object", properties: {} }, strict: false }],
      tool_choice: { type: "function", name: "look" },
      text: { format: { type: "json_schema", name: "a", strict: false }, verbosity: "low" },
      ...{ max_output_tokens: 9, temperature: 0.5, top_p: 0.9, top_logprobs: 2, parallel_tool_calls: false },
      include: ["reasoning.encrypted_content", "message.output_text.logprobs"],
      reasoning: { effort: "low", summary: "auto" },
      ...{ safety_identifier: "u", service_tier: "default", prompt_cache_key: "k", metadata: { a: "b" } },
    });
  });

  test.each([
    [{ enabled: false }, { effort: "none" }],
    [{ enabled: true }, { summary: "auto" }],
    [{ budget: 1_024 }, { effort: "minimal", summary: "auto" }],
    [{ budget: 10_000 }, { effort: "medium", summary: "auto" }],
    [{ budget: 99_999, shown: "omitted" }, { effort: "high" }],
  ])("writes thinking options: %j", (thinking, reasoning) => {
    expect(bodyOf({ thinking })["reasoning"]).toEqual(reasoning);
  });

  test("requests from OpenAI's models only the reasoning that each model accepts", () => {
    const written = (model: string, thinking?: Thinking) => {
      const { body, leftOut } = writeRequest({ ...empty, ...(thinking ? { thinking } : {}) }, model);
      const { include, reasoning } = JSON.parse(body) as Json;
      return { include, reasoning, leftOut };
    };
    const include = ["reasoning.encrypted_content"];
    expect(written("gpt-4.1")).toEqual({ include: [], reasoning: undefined, leftOut: [] });
    expect(written("gpt-4.1", { enabled: true, budget: 4_000 })).toEqual({
      ...{ include: [], reasoning: undefined, leftOut: ["reasoning"] },
    });
    expect(written("gpt-5.2", { enabled: true, budget: 1_024 })).toEqual({
      ...{ include, reasoning: { effort: "low", summary: "auto" }, leftOut: [] },
    });
    expect(written("gpt-5.1", { effort: "xhigh", shown: "omitted" })).toEqual({
      ...{ include, reasoning: { effort: "high" }, leftOut: [] },
    });
    expect(written("gpt-5-mini", { enabled: false })).toEqual({
      ...{ include, reasoning: { effort: "minimal" }, leftOut: [] },
    });
  });

  test("leaves out and names members that the server refuses and the model does not need", () => {
    const long = "u".repeat(65);
    const turns: ConversationMessage[] = [{ role: "user", name: "ada", parts: [], place }];
    const hints = { user: long, promptCacheKey: long, serviceTier: "gold" };
    expect(leftOutOf({ turns, hints, cache: { type: "ephemeral" }, others: { top_a: 1 } })).toEqual([
      ...["name", "cache_control", "user", "prompt_cache_key", "service_tier", "top_a"],
    ]);
    expect(bodyOf({ hints })).not.toHaveProperty("safety_identifier");
  });

  test.each<[string, Partial<Conversation>]>([
    ["n", { choices: 2 }],
    ["stop", { sampling: { stop: ["a"] } }],
    ["stop_sequences", { sampling: { stop: ["a"], stopPlace: "stop_sequences" } }],
    ["seed", { sampling: { seed: 0 } }],
    ["top_k", { sampling: { topK: 4 } }],
    ["frequency_penalty", { sampling: { frequencyPenalty: 1 } }],
    ["presence_penalty", { sampling: { presencePenalty: 1 } }],
    ["logit_bias", { sampling: { logitBias: { 5: 1 } } }],
    ["tool_choice", { toolChoice: { type: "required" } }],
  ])("refuses members that change the answer and cannot be expressed: %s", (param, more) => {
    expect(refusal(more).param).toBe(param);
  });

  test("accepts members with their default value", () => {
    const sampling = { stop: [], frequencyPenalty: 0, presencePenalty: 0, logitBias: {} };
    expect(bodyOf({ choices: 1, sampling, toolChoice: { type: "auto" } })).not.toHaveProperty("tool_choice");
  });
});
