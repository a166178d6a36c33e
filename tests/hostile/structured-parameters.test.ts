// Parameters with a structure (messages, tools, formats, lists): a wrong part is named by its place, and never quoted.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { operations, type ParameterServer, type Path, rawMarker, startParameterServer } from "./parameter-server.ts";

let gateway: ParameterServer;
const send = (path: Path, changes: Record<string, unknown>, rawValue?: string) => gateway.send(path, changes, rawValue);

beforeAll(async () => {
  gateway = await startParameterServer();
});

afterAll(() => gateway[Symbol.asyncDispose]());

describe("chat messages", () => {
  const user = { role: "user", content: "Hi" };
  const wrong: readonly [name: string, messages: unknown, says: RegExp][] = [
    ["none", [], /^messages: must be an array of at least 1 item/],
    ["a text", ["Hi"], /^messages\[0\]: must be an object/],
    ["null", [null], /^messages\[0\]: must be an object/],
    ["a message without role", [{ content: "Hi" }], /^messages\[0\]\.role: .*"system".*"tool"/],
    [
      "an empty role",
      [user, { role: "", content: "x" }],
      /^messages\[1\]\.role: must be a string of 1 to 64 characters/,
    ],
    [
      "an unknown role with a wrong content",
      [{ role: "critic", content: [7] }],
      /^messages\[0\]\.content\[0\]: must be an object/,
    ],
    ["a role of the wrong type", [{ role: 7, content: "x" }], /^messages\[0\]\.role: /],
    [
      "a message without content",
      [{ role: "user" }],
      /^messages\[0\]\.content: is required and must be a string or an array/,
    ],
    [
      "content of the wrong type",
      [{ role: "user", content: 7 }],
      /^messages\[0\]\.content: must be a string or an array.*got 7/,
    ],
    ["content null of a user", [{ role: "user", content: null }], /^messages\[0\]\.content: /],
    ["no content parts", [{ role: "user", content: [] }], /^messages\[0\]\.content: .*at least 1/],
    [
      "a part without type",
      [{ role: "user", content: [{ video: "x" }] }],
      /^messages\[0\]\.content\[0\]\.type: is required and must be one of "text", "image_url", "input_audio", "file", "refusal" or a string/,
    ],
    [
      "a text part without text",
      [{ role: "user", content: [{ type: "text" }] }],
      /^messages\[0\]\.content\[0\]\.text: is required and must be a string/,
    ],
    [
      "an image part without url",
      [
        {
          role: "user",
          content: [
            { type: "text", text: "a" },
            { type: "image_url", image_url: {} },
          ],
        },
      ],
      /^messages\[0\]\.content\[1\]\.image_url\.url: is required/,
    ],
    [
      "a tool message without its call",
      [user, { role: "tool", content: "x" }],
      /^messages\[1\]\.tool_call_id: is required/,
    ],
    [
      "a call without id",
      [{ role: "assistant", tool_calls: [{ type: "function" }] }],
      /^messages\[0\]\.tool_calls\[0\]\.id: is required/,
    ],
    [
      "arguments that are no text",
      [{ role: "assistant", tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: {} } }] }],
      /^messages\[0\]\.tool_calls\[0\]\.function\.arguments: must be a string/,
    ],
    [
      "a name that is too long",
      [{ role: "user", content: "x", name: "n".repeat(257) }],
      /^messages\[0\]\.name: must be a string of at most 256 characters/,
    ],
  ];

  test.each(wrong)("refuses %s by its place in the messages", async (_name, messages, says) => {
    const [status, message] = await send("/v1/chat/completions", { messages });
    expect(status).toBe(400);
    expect(message).toMatch(says);
  });

  test("accepts every documented role and content part", async () => {
    const messages = [
      { role: "system", content: "a" },
      { role: "developer", content: [{ type: "text", text: "a" }] },
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "image_url", image_url: { url: "data:image/png;base64,AA==" } },
          { type: "input_audio", input_audio: { data: "AA==", format: "wav" } },
          { type: "file", file: { file_id: "x" } },
        ],
      },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }],
      },
      { role: "tool", content: "a", tool_call_id: "c" },
      { role: "assistant", content: [{ type: "refusal", refusal: "no" }] },
      { role: "function", name: "f", content: "a" },
    ];
    expect((await send("/v1/chat/completions", { messages }))[0]).toBe(200);
  });
});

describe("parameters with a structure", () => {
  const wrong: readonly [name: string, path: Path, changes: Record<string, unknown>, says: RegExp][] = [
    [
      "an empty model id",
      "/v1/chat/completions",
      { model: "" },
      /^model: must be a string of 1 to 256 characters \(got an empty string\)/,
    ],
    [
      "a model id of 257 characters",
      "/v1/chat/completions",
      { model: "m".repeat(257) },
      /^model: must be a string of 1 to 256 characters \(got a string of 257/,
    ],
    [
      "a stop string of 1,025 characters",
      "/v1/chat/completions",
      { stop: "x".repeat(1025) },
      /^stop: must be a string of at most 1024 characters or an array/,
    ],
    ["17 stop strings", "/v1/chat/completions", { stop: Array(17).fill("a") }, /^stop: .*at most 16 items/],
    [
      "an empty stop string in a list",
      "/v1/chat/completions",
      { stop: ["a", ""] },
      /^stop\[1\]: must be a string of 1 to 1024 characters/,
    ],
    ["a number among stop strings", "/v1/chat/completions", { stop: ["a", 7] }, /^stop\[1\]: must be a string/],
    [
      "a bias above 100",
      "/v1/chat/completions",
      { logit_bias: { 5: 101 } },
      /^logit_bias\.5: must be a number from -100 to 100 \(got 101\)/,
    ],
    [
      "a bias that is no number",
      "/v1/chat/completions",
      { logit_bias: { 5: "a" } },
      /^logit_bias\.5: must be a number from -100 to 100/,
    ],
    [
      "a label that is no text",
      "/v1/chat/completions",
      { metadata: { a: 7 }, store: true },
      /^metadata\[a\]: must be a string of at most 512 characters/,
    ],
    [
      "a label of 513 characters",
      "/v1/chat/completions",
      { metadata: { a: "x".repeat(513) }, store: true },
      /^metadata\[a\]: must be a string of at most 512 characters/,
    ],
    [
      "a response format without type",
      "/v1/chat/completions",
      { response_format: {} },
      /^response_format\.type: .*"text", "json_object", "json_schema"/,
    ],
    [
      "a response format of a type that is no text",
      "/v1/chat/completions",
      { response_format: { type: 7 } },
      /^response_format\.type: must be one of "text", "json_object", "json_schema" or a string of 1 to 64 characters/,
    ],
    [
      "a json_schema without name",
      "/v1/chat/completions",
      { response_format: { type: "json_schema", json_schema: { name: "" } } },
      /^response_format\.json_schema\.name: must be a string of 1 to 64/,
    ],
    ["a tool without type", "/v1/chat/completions", { tools: [{}] }, /^tools\[0\]\.type: is required/],
    [
      "a function without name",
      "/v1/chat/completions",
      { tools: [{ type: "function", function: {} }] },
      /^tools\[0\]\.function\.name: is required/,
    ],
    [
      "513 tools",
      "/v1/chat/completions",
      { tools: Array(513).fill({ type: "function" }) },
      /^tools: must be an array of at most 512 items/,
    ],
    [
      "a tool choice that is a number",
      "/v1/chat/completions",
      { tool_choice: 7 },
      /^tool_choice: must be a string of 1 to 64 characters or an object/,
    ],
    ["a tool choice without type", "/v1/chat/completions", { tool_choice: {} }, /^tool_choice\.type: is required/],
    [
      "include_usage as a text",
      "/v1/chat/completions",
      { stream_options: { include_usage: "yes" } },
      /^stream_options\.include_usage: must be true or false/,
    ],
    ["an empty list of prompts", "/v1/completions", { prompt: [] }, /^prompt: .*(at least|1 to)/],
    ["a text and a token", "/v1/completions", { prompt: ["a", 1] }, /^prompt(\[\d\])?: /],
    ["a negative token", "/v1/completions", { prompt: [1, -1] }, /^prompt\[1\]: must be an integer of at least 0/],
    ["half a token", "/v1/completions", { prompt: [1, 1.5] }, /^prompt\[1\]: must be an integer/],
    ["an empty list of tokens", "/v1/completions", { prompt: [[1], []] }, /^prompt\[1\]: /],
    ["an empty input", "/v1/embeddings", { input: "" }, /^input: /],
    [
      "an empty text among inputs",
      "/v1/embeddings",
      { input: ["a", ""] },
      /^input\[1\]: must be a string of at least 1 character/,
    ],
    ["2,049 inputs", "/v1/embeddings", { input: Array(2049).fill("a") }, /^input: .*2048/],
    [
      "an encoding that is no text",
      "/v1/embeddings",
      { encoding_format: 8 },
      /^encoding_format: must be a string of 1 to 64 characters/,
    ],
  ];

  test.each(wrong)("%s on %s", async (_name, path, changes, says) => {
    const [status, message] = await send(path, changes);
    expect([status, message]).toEqual([400, expect.stringMatching(says)] as never);
    expect(message.length).toBeLessThan(400);
  });

  test("reports an invalid token id in logit_bias as a wrong name", async () => {
    const [status, message] = await send("/v1/chat/completions", { logit_bias: { hello: 5 } });
    expect(status).toBe(400);
    expect(message).toStartWith("logit_bias");
    expect(message).not.toContain("got 5");
    expect(message).toMatch(/token id|name|key/);
  });

  test("reports a too long metadata key as a wrong name without repeating it", async () => {
    const [status, message] = await send("/v1/chat/completions", {
      metadata: { ["k".repeat(65)]: "value" },
      store: true,
    });
    expect(status).toBe(400);
    expect(message).toStartWith("metadata");
    expect(message).toContain("64");
    expect(message).not.toContain("512");
    expect(message).not.toContain("k".repeat(65));
  });

  test("accepts names of JavaScript object members like any other", async () => {
    for (const name of ["constructor", "__proto__", "toString", "hasOwnProperty"]) {
      const kept = { metadata: rawMarker, store: true };
      const [status, message] = await send("/v1/chat/completions", kept, `{"${name}":7}`);
      expect([name, status]).toEqual([name, 400]);
      expect(message).toStartWith(`metadata[${name}]: must be a string`);
      expect((await send("/v1/chat/completions", kept, `{"${name}":"x"}`))[0]).toBe(200);
      expect((await send("/v1/chat/completions", { metadata: rawMarker }, `{"${name}":"x"}`))[0]).toBe(200);
      expect((await send("/v1/chat/completions", { logit_bias: rawMarker }, `{"${name}":1}`))[0]).toBe(400);
    }
  });

  test("describes refused text values without quoting them", async () => {
    for (const changes of [{ temperature: "CANARY" }, { n: "CANARY" }, { dimensions: "CANARY" }]) {
      const path = "dimensions" in changes ? "/v1/embeddings" : "/v1/chat/completions";
      const [status, message] = await send(path, changes);
      expect(status).toBe(400);
      expect(message).not.toContain("CANARY");
    }
  });

  test.each<[string, Path, Record<string, unknown>]>([
    ["a role", "/v1/chat/completions", { messages: [{ role: "critic", content: "Hi" }, { role: "context" }] }],
    [
      "parts of a message",
      "/v1/chat/completions",
      {
        messages: [
          {
            role: "user",
            content: [
              { type: "video_url", video_url: { url: "data:," } },
              { type: "audio_url", audio_url: { url: "data:," } },
              { type: "thinking", thinking: "Hm", signature: "x" },
              { type: "tool_reference", name: "f" },
            ],
          },
        ],
      },
    ],
    ["a response format", "/v1/chat/completions", { response_format: { type: "grammar", value: "root ::= .*" } }],
    ["a tool choice", "/v1/chat/completions", { tool_choice: "any" }],
    ["a number of log-probabilities in a chat", "/v1/chat/completions", { logprobs: 5 }],
    ["a top_p of 0", "/v1/chat/completions", { top_p: 0 }],
    ["an encoding", "/v1/embeddings", { encoding_format: "int8" }],
    ["an object to embed", "/v1/embeddings", { input: { image: "data:," } }],
    ["texts and objects to embed", "/v1/embeddings", { input: ["a", { text: "b" }, { image: "data:," }] }],
  ])("passes on %s that the gateway does not know unchanged", async (_, path, changes) => {
    expect(await send(path, changes)).toEqual([200, ""]);
    const { model } = operations[path].body;
    expect(gateway.upstream.requests.at(-1)?.body).toEqual({ ...operations[path].body, ...changes, model });
  });

  test.each<[string, Path, Record<string, unknown>, Record<string, unknown>]>([
    ["a token limit of -1", "/v1/chat/completions", { max_tokens: -1 }, {}],
    ["both token limits of -1", "/v1/chat/completions", { max_tokens: -1, max_completion_tokens: -1.0 }, {}],
    [
      "a token limit of -1 beside another",
      "/v1/chat/completions",
      { max_tokens: 5, max_completion_tokens: -1 },
      { max_tokens: 5 },
    ],
    [
      "the older limit of -1 beside the newer",
      "/v1/chat/completions",
      { max_tokens: -1, max_completion_tokens: 5 },
      { max_completion_tokens: 5 },
    ],
    ["an empty stop", "/v1/chat/completions", { stop: "", seed: 1 }, { seed: 1 }],
    ["an empty stop and a token limit of -1", "/v1/completions", { stop: "", max_tokens: -1 }, {}],
  ])("omits %s, which means no limit, for servers that refuse it", async (_, path, changes, sent) => {
    expect(await send(path, changes)).toEqual([200, ""]);
    expect(gateway.upstream.requests.at(-1)?.body).toEqual({ ...operations[path].body, ...sent });
  });

  test("renames max_completion_tokens of a legacy completion to its servers' name", async () => {
    for (const changes of [{ max_completion_tokens: 5 }, { max_completion_tokens: 5, max_tokens: 1_000_000 }]) {
      expect(await send("/v1/completions", changes)).toEqual([200, ""]);
      expect(gateway.upstream.requests.at(-1)?.body).toEqual({ ...operations["/v1/completions"].body, max_tokens: 5 });
    }
  });

  test("passes on unknown parameters with any value", async () => {
    const changes = { x: 1, top_k: -5, min_p: "a", guided_json: { a: [null] }, service_tier: 7 };
    expect((await send("/v1/chat/completions", changes))[0]).toBe(200);
    expect(gateway.upstream.requests.at(-1)?.body).toMatchObject(changes);
  });

  test("refuses a token limit above the model's context, and names the context", async () => {
    for (const field of ["max_tokens", "max_completion_tokens"]) {
      expect((await send("/v1/chat/completions", { model: "small", [field]: 100 }))[0]).toBe(200);
      const [status, message] = await send("/v1/chat/completions", { model: "small", [field]: 101 });
      expect(status).toBe(400);
      expect(message).toBe(`${field}: must be at most 100, the context of \`small\` in tokens (got 101).`);
    }
  });

  test("answers 404 for an unknown model without repeating a long or hostile id", async () => {
    for (const model of ["nope", "a/../../b", "x".repeat(256), "\u0000\r\n", "<script>"]) {
      const response = await gateway.server.request("/v1/chat/completions", {
        body: { ...operations["/v1/chat/completions"].body, model },
      });
      expect(response.status).toBe(404);
      const { error } = (await response.json()) as { error: { code: string; message: string } };
      expect(error.code).toBe("model_not_found");
      expect(error.message.length).toBeLessThan(300);
    }
  });
});
