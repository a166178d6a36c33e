// Tests that requests of OpenAI's clients and Codex are read as conversations, and that members no other format can
// express are refused by name.
import { describe, expect, test } from "bun:test";
import { GatewayError } from "../../../base/errors.ts";
import type { Seal } from "../../../domain/seal.ts";
import { responseRequest } from "../../../wire/responses.ts";
import { readRequest } from "./read-request.ts";
import { sealReasoning } from "./sealed-reasoning.ts";

type Json = Record<string, unknown>;

const seal: Seal = {
  seal: (text) => `own.${Buffer.from(text).toString("base64url")}`,
  open: (sealed) => (sealed.startsWith("own.") ? Buffer.from(sealed.slice(4), "base64url").toString() : undefined),
};

function read(request: Json) {
  return readRequest(responseRequest.parse({ model: "m", input: "Hi", ...request }) as Json, seal);
}

const turnsOf = (...input: Json[]) => read({ input }).turns;
const partsOf = (...content: Json[]) => turnsOf({ role: "user", content })[0]?.parts;

function refusal(request: Json): GatewayError {
  try {
    read(request);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("not refused");
}

describe("the input", () => {
  test("reads a text as the input, after the instructions", () => {
    expect(read({ instructions: "Be brief.", input: "Hi" }).turns).toEqual([
      { role: "system", parts: [{ type: "text", text: "Be brief." }], place: "instructions" },
      { role: "user", parts: [{ type: "text", text: "Hi" }], place: "input" },
    ]);
  });

  test("joins text and calls of the assistant between two other turns", () => {
    const turns = turnsOf(
      { role: "developer", content: "Be kind." },
      { type: "message", role: "user", content: [{ type: "input_text", text: "Look." }] },
      {
        type: "reasoning",
        id: "rs_1",
        summary: [
          { type: "summary_text", text: "a" },
          { type: "summary_text", text: "b" },
        ],
        encrypted_content: "gAAA",
      },
      {
        type: "message",
        id: "msg_1",
        role: "assistant",
        content: [
          { type: "output_text", text: "So." },
          { type: "refusal", refusal: "No." },
        ],
      },
      { type: "function_call", call_id: "c1", name: "look", arguments: '{"a":1}', namespace: "eyes" },
      { type: "custom_tool_call", call_id: "c2", name: "patch", input: "***" },
      { type: "function_call_output", call_id: "c1", output: "seen" },
      { type: "custom_tool_call_output", call_id: "c2", output: [{ type: "input_text", text: "done" }] },
    );
    expect(turns).toMatchObject([
      { role: "developer", place: "input[0]" },
      { role: "user", parts: [{ type: "text", text: "Look." }] },
      {
        role: "assistant",
        id: "msg_1",
        place: "input[2]",
        parts: [
          { type: "reasoning", text: "a\n\nb", isSummary: true, proof: { kind: "encrypted", data: "gAAA" } },
          { type: "text", text: "So." },
          { type: "refusal", text: "No." },
          { type: "call", kind: "function", callId: "c1", name: "look", namespace: "eyes", input: '{"a":1}' },
          { type: "call", kind: "custom", callId: "c2", name: "patch", input: "***" },
        ],
      },
      { role: "tool", kind: "function", callId: "c1", parts: [{ type: "text", text: "seen" }] },
      { role: "tool", kind: "custom", callId: "c2", parts: [{ type: "text", text: "done" }] },
    ]);
  });

  test.each([
    [
      "local_shell_call",
      { action: { type: "exec", command: ["ls"] } },
      "local_shell",
      { type: "exec", command: ["ls"] },
    ],
    ["shell_call", { action: { commands: ["ls"] } }, "shell", { commands: ["ls"] }],
    [
      "apply_patch_call",
      { operation: { type: "delete_file", path: "a" } },
      "apply_patch",
      { type: "delete_file", path: "a" },
    ],
    ["tool_search_call", { arguments: { query: "q" } }, "tool_search", { query: "q" }],
  ])("reads a %s as a call, and its output as the result", (type, more, name, values) => {
    const output = [{ stdout: "a", stderr: "", outcome: { type: "exit", exit_code: 0 } }];
    const turns = turnsOf(
      { type, call_id: "c1", ...more },
      {
        type: type.replace(/_call$/, "_call_output").replace("tool_search_call_", "tool_search_"),
        call_id: "c1",
        output,
      },
    );
    expect(turns).toMatchObject([
      { role: "assistant", parts: [{ type: "call", kind: "function", name, input: JSON.stringify(values) }] },
      { role: "tool", callId: "c1", parts: [{ type: "text", text: JSON.stringify(output) }] },
    ]);
  });

  test.each([[undefined], [null], [""]])("reads the tool output %p as nothing", (output) => {
    expect(turnsOf({ type: "function_call_output", call_id: "c1", output })[0]?.parts).toEqual([]);
  });

  test("opens reasoning that the gateway sealed, with the proof for its vendor", () => {
    const proof = { kind: "signature", data: "sig" } as const;
    const sealed = sealReasoning(seal, { text: "long thought", proof });
    const item = { type: "reasoning", summary: [{ type: "summary_text", text: "short" }], encrypted_content: sealed };
    expect(turnsOf(item)[0]?.parts).toEqual([
      { type: "reasoning", text: "long thought", isSummary: false, proof, id: undefined },
    ]);
    const ofMessages = { type: "reasoning", summary: [], encrypted_content: seal.seal("a thought") };
    expect(turnsOf(ofMessages)[0]?.parts).toMatchObject([{ text: "a thought", proof: undefined }]);
    expect(turnsOf({ type: "reasoning", summary: [], encrypted_content: "" })).toEqual([]);
    expect(
      turnsOf({ type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "raw" }] })[0]?.parts,
    ).toMatchObject([{ text: "raw", isSummary: false }]);
  });

  test("opens the gateway's own compaction as user text", () => {
    expect(turnsOf({ type: "compaction", encrypted_content: seal.seal("the sum") })).toMatchObject([
      { role: "user", parts: [{ type: "text", text: "the sum" }] },
    ]);
    expect(refusal({ input: [{ type: "compaction", encrypted_content: "gAAA" }] }).param).toBe(
      "input[0].encrypted_content",
    );
  });

  test("asks for a summary and no call if the last item wants a compaction", () => {
    const asked = {
      input: [{ role: "user", content: "Hi" }, { type: "compaction_trigger" }],
      tools: [{ type: "function", name: "run" }],
    };
    const { turns, toolChoice } = readRequest(asked, seal);
    expect(turns).toMatchObject([
      {},
      { role: "user", parts: [{ text: expect.stringContaining("Sum up our conversation") }] },
    ]);
    expect(toolChoice).toEqual({ type: "none" });
  });

  test("reads images, files and sound", () => {
    expect(
      partsOf(
        { type: "input_image", image_url: "https://a.test/b.png", detail: "low" },
        { type: "input_image", image_url: "data:image/png;base64,AAAA", detail: "auto" },
        { type: "input_image", file_id: "file_1" },
        { type: "input_file", filename: "a.pdf", file_data: "data:application/pdf;base64,AAAA" },
        { type: "input_file", file_url: "https://a.test/a.pdf" },
        { type: "input_audio", input_audio: { data: "AAAA", format: "wav" } },
      ),
    ).toMatchObject([
      {
        type: "image",
        source: { kind: "url", url: "https://a.test/b.png" },
        detail: "low",
        place: "input[0].content[0]",
      },
      { type: "image", source: { kind: "data", mediaType: "image/png", data: "AAAA" }, detail: undefined },
      { type: "image", source: { kind: "id", id: "file_1" } },
      { type: "file", source: { kind: "data", mediaType: "application/pdf", data: "AAAA" }, name: "a.pdf" },
      { type: "file", source: { kind: "url", url: "https://a.test/a.pdf" } },
      { type: "audio", data: "AAAA", format: "wav" },
    ]);
  });

  test("keeps cache marks of Anthropic and OpenAI wherever they are", () => {
    const mark = { cache_control: { type: "ephemeral" } };
    const cache = mark.cache_control;
    const input = [
      {
        role: "user",
        content: [
          { type: "input_text", text: "a", ...mark },
          { type: "input_text", text: "b", prompt_cache_breakpoint: { mode: "explicit" } },
          { type: "input_image", image_url: "https://a.test/b.png", prompt_cache_breakpoint: { ttl: "12h" } },
          { type: "input_file", file_url: "https://a.test/a.pdf", ...mark },
        ],
      },
      { type: "function_call", call_id: "c", name: "look", arguments: "{}", ...mark },
      { type: "function_call_output", call_id: "c", output: "1", ...mark },
    ];
    const tools = [{ type: "function", name: "look", ...mark }];
    expect(read({ input, tools, ...mark })).toMatchObject({
      cache,
      tools: [{ name: "look", cache }],
      turns: [
        { parts: [{ cache }, { text: "b", cache }, { cache: { type: "ephemeral", ttl: "1h" } }, { cache }] },
        { parts: [{ type: "call", cache }] },
        { role: "tool", cache },
      ],
      others: {},
    });
  });

  test("names items without meaning for another model, even with names of the prototype", () => {
    const { turns, others } = read({
      input: [{ type: "web_search_call", id: "ws_1" }, { type: "constructor" }, { type: "__proto__" }],
    });
    expect(turns).toEqual([]);
    expect(Object.keys(others)).toEqual(["input[0]", "input[1]", "input[2]"]);
  });

  test.each([
    ["input[0].role", { input: [{ role: "tool", content: "a" }] }],
    ["input[0].content[0].type", { input: [{ role: "user", content: [{ type: "video" }] }] }],
    [
      "input[0].content[1].type",
      { input: [{ role: "assistant", content: [{ type: "output_text", text: "a" }, { type: "input_image" }] }] },
    ],
    ["input[0].content[0]", { input: [{ role: "user", content: [{ type: "input_image" }] }] }],
    [
      "input[0].content[0]",
      { input: [{ role: "user", content: [{ type: "input_audio", input_audio: { data: "A" } }] }] },
    ],
    ["tools[1].name", { tools: [{ type: "web_search" }, { type: "function" }] }],
    ["tool_choice", { tool_choice: "any" }],
    ["tool_choice.name", { tool_choice: { type: "function" } }],
    ["tool_choice.type", { tool_choice: { type: "web_search" } }],
    ["text.format.type", { text: { format: { type: "xml" } } }],
    ["text.format.schema", { text: { format: { type: "json_schema", name: "a" } } }],
    ["prompt", { prompt: { id: "pmpt_1" } }],
  ])("refuses an input with %s", (param, request) => {
    const error = refusal(request);
    expect(error.code).toBe("invalid_request");
    expect(error.param).toBe(param);
    expect(error.message).toStartWith(`${param}: `);
  });
});

describe("tools", () => {
  const look = { type: "function", name: "look", description: "Looks.", parameters: { type: "object" }, strict: true };

  test("reads functions, custom tools with grammars, namespaces, and the client's shell", () => {
    const format = { type: "grammar", syntax: "lark", definition: "start: /a/" };
    const { tools, others } = read({
      tools: [
        look,
        { type: "custom", name: "patch", format },
        { type: "namespace", name: "mcp__a", tools: [{ ...look, strict: null }] },
        { type: "local_shell" },
        { type: "web_search" },
        { type: "constructor" },
      ],
    });
    expect(tools).toMatchObject([
      {
        kind: "function",
        name: "look",
        description: "Looks.",
        parameters: { type: "object" },
        strict: true,
        place: "tools[0]",
      },
      { kind: "custom", name: "patch", format, namespace: undefined },
      { kind: "function", name: "look", namespace: "mcp__a", strict: undefined, place: "tools[2].tools[0]" },
      { kind: "function", name: "local_shell", parameters: { required: ["type", "command"] } },
    ]);
    expect(Object.keys(others)).toEqual(["tools[4]", "tools[5]"]);
  });

  test("reads tools among the items", () => {
    const { tools } = read({ input: [{ type: "additional_tools", role: "developer", tools: [look] }] });
    expect(tools).toMatchObject([{ name: "look", place: "input[0].tools[0]" }]);
  });

  test.each([
    ["auto", { type: "auto" }],
    ["none", { type: "none" }],
    ["required", { type: "required" }],
    [null, undefined],
    [
      { type: "function", name: "look" },
      { type: "tool", kind: "function", name: "look", namespace: undefined },
    ],
    [
      { type: "custom", name: "patch" },
      { type: "tool", kind: "custom", name: "patch", namespace: undefined },
    ],
  ])("reads the tool choice %j", (tool_choice, choice) => {
    expect(read({ tools: [look], tool_choice }).toolChoice).toEqual(choice as never);
  });

  test("offers only allowed tools", () => {
    const other = { ...look, name: "hear" };
    const tool_choice = { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "hear" }] };
    const { tools, toolChoice } = read({ tools: [look, other], tool_choice });
    expect(tools.map(({ name }) => name)).toEqual(["hear"]);
    expect(toolChoice).toEqual({ type: "required" });
  });
});

describe("members", () => {
  test("reads output, thinking and sampling options", () => {
    const schema = { type: "object" };
    const conversation = read({
      ...{
        max_output_tokens: 9,
        temperature: 0.5,
        top_p: 0.9,
        top_logprobs: 2,
        parallel_tool_calls: false,
        stream: true,
      },
      text: { verbosity: "low", format: { type: "json_schema", name: "a", schema, strict: true } },
      reasoning: { effort: "low", summary: "auto" },
      ...{ safety_identifier: "u", user: "older", service_tier: "flex", prompt_cache_key: "k", metadata: { a: "b" } },
    });
    expect(conversation).toMatchObject({
      ...{ maxTokens: 9, parallelCalls: false, stream: true, thinking: { effort: "low", shown: "auto" }, others: {} },
      sampling: { temperature: 0.5, topP: 0.9, logprobs: 2, verbosity: "low" },
      output: { type: "schema", name: "a", schema, strict: true },
      hints: { user: "u", serviceTier: "flex", promptCacheKey: "k", metadata: { a: "b" } },
    });
  });

  test("names unknown members, even those of the prototype, and no defaults", () => {
    const body = JSON.parse(
      '{"model":"m","input":"a","__proto__":{"x":1},"client_metadata":{},"truncation":"disabled","moderation":null}',
    );
    const { others } = readRequest(body, seal);
    expect(Object.keys(others)).toEqual(["__proto__", "client_metadata"]);
    expect(Object.getPrototypeOf(others)).toBe(Object.prototype);
  });
});

describe("the schema", () => {
  test("accepts a request of Codex", () => {
    const request = {
      ...{ model: "m", instructions: "You are Codex.", tool_choice: "auto", parallel_tool_calls: true, store: false },
      ...{ stream: true, include: ["reasoning.encrypted_content"], prompt_cache_key: "019a", service_tier: null },
      reasoning: { effort: "medium", summary: "auto" },
      text: { verbosity: "low" },
      client_metadata: { "x-codex-installation-id": "a" },
      input: [
        { type: "message", role: "developer", content: [{ type: "input_text", text: "<permissions>" }] },
        { type: "message", role: "user", content: [{ type: "input_text", text: "Fix it." }] },
        { type: "reasoning", summary: [], content: null, encrypted_content: "gAAA" },
        { type: "custom_tool_call", status: "completed", call_id: "c1", name: "apply_patch", input: "*** Begin" },
        { type: "custom_tool_call_output", call_id: "c1", output: "Done." },
        { type: "function_call", name: "list", namespace: "mcp__files", arguments: "{}", call_id: "c2" },
        { type: "function_call_output", call_id: "c2", output: [{ type: "input_text", text: "a" }] },
      ],
      tools: [
        {
          type: "function",
          name: "exec_command",
          description: "Runs.",
          strict: false,
          parameters: { type: "object", properties: {} },
        },
        {
          type: "custom",
          name: "apply_patch",
          description: "Patches.",
          format: { type: "grammar", syntax: "lark", definition: "start: x" },
        },
        {
          type: "namespace",
          name: "mcp__files",
          description: "Files.",
          tools: [{ type: "function", name: "list", parameters: {} }],
        },
        { type: "web_search", external_web_access: false },
        { type: "image_generation", output_format: "png" },
      ],
    };
    expect(responseRequest.parse(request)).toEqual(request as never);
    expect(Object.keys(read(request).others)).toEqual(["client_metadata", "tools[3]", "tools[4]"]);
    expect(responseRequest.safeParse({ ...request, reasoning: null, text: null }).success).toBe(true);
  });

  test.each([
    ["input", { input: 5 }],
    ["input", {}],
    ["max_output_tokens", { input: "a", max_output_tokens: 0 }],
    ["temperature", { input: "a", temperature: 3 }],
    ["tools", { input: "a", tools: {} }],
    ["tools", { input: "a", tools: [{ name: "a" }] }],
    ["include", { input: "a", include: "reasoning.encrypted_content" }],
    ["reasoning", { input: "a", reasoning: "high" }],
    ["text", { input: "a", text: { format: "json" } }],
    ["truncation", { input: "a", truncation: "some" }],
  ])("refuses an invalid `%s` by its name", (member, request) => {
    const { error } = responseRequest.safeParse({ model: "m", ...request });
    expect(error?.issues.map(({ path }) => path[0])).toEqual([member]);
  });
});
