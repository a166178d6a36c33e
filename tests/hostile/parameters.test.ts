// Every parameter with every wrong type and at every bound: a 400 that names the field and what it may be.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { z } from "zod";
import { chatRequest } from "../../src/domain/chat.ts";
import { completionRequest } from "../../src/domain/completion.ts";
import { embeddingRequest } from "../../src/domain/embedding.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

let upstream: ScriptedUpstream;
let server: TestServer;

beforeAll(async () => {
  upstream = await startUpstream();
  // Answers whatever operation is asked for.
  upstream.script((_request, res) => {
    res.writeHead(200, { "content-type": "application/json" });
    res.end('{"id":"x","object":"x","created":1,"choices":[],"data":[],"usage":{"prompt_tokens":1,"total_tokens":1}}');
  });
  server = await startHeadrace({
    yaml: upstreamYaml(
      upstream,
      "models:\n  - { id: small, context: 100, deployments: [{ upstream: up, model: upstream-model }] }\n",
    ),
  });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

type Body = Record<string, unknown>;
const operations = {
  "/v1/chat/completions": {
    schema: chatRequest,
    body: { model: "upstream-model", messages: [{ role: "user", content: "Hi" }] } as Body,
  },
  "/v1/completions": { schema: completionRequest, body: { model: "upstream-model", prompt: "Hi" } as Body },
  "/v1/embeddings": { schema: embeddingRequest, body: { model: "upstream-model", input: "Hi" } as Body },
} as const;
type Path = keyof typeof operations;

/** Status, and the message of the error. JSON text of the values is kept, so that 1e400 arrives as it is written. */
async function send(path: Path, changes: Record<string, unknown>, rawValue?: string): Promise<[number, string]> {
  const marker = "__RAW__";
  const body = JSON.stringify({ ...operations[path].body, ...changes });
  const text = rawValue === undefined ? body : body.replace(`"${marker}"`, rawValue);
  const response = await server.request(path, { body: text });
  const answer = (await response.json()) as { error?: { message: string; code: string; type: string } };
  if (response.status === 400) {
    expect(answer.error).toMatchObject({ code: "invalid_request", type: "invalid_request_error" });
  }
  return [response.status, answer.error?.message ?? ""];
}

interface Range {
  /** Text of the allowed range in the message. */
  says: string;
  allowed: readonly number[];
  refused: readonly number[];
}

const both: readonly Path[] = ["/v1/chat/completions", "/v1/completions"];
const chatOnly: readonly Path[] = ["/v1/chat/completions"];

/** Bounds of the specification and the decisions, and where neither gives one, of the OpenAI API. */
const numbers: readonly [field: string, paths: readonly Path[], range: Range][] = [
  [
    "temperature",
    both,
    { says: "a number from 0 to 2", allowed: [0, 0.7, 2], refused: [-0.0001, 2.0001, -1, 1e300] },
  ],
  ["top_p", both, { says: "a number above 0 and up to 1", allowed: [1e-9, 0.5, 1], refused: [0, -0.1, 1.0001] }],
  ["frequency_penalty", both, { says: "a number from -2 to 2", allowed: [-2, 0, 2], refused: [-2.0001, 2.0001] }],
  ["presence_penalty", both, { says: "a number from -2 to 2", allowed: [-2, 0, 2], refused: [-2.0001, 2.0001] }],
  ["max_tokens", both, { says: "an integer of at least 1", allowed: [1, 1_000_000], refused: [0, -1, 1.5] }],
  [
    "max_completion_tokens",
    chatOnly,
    { says: "an integer of at least 1", allowed: [1, 1_000_000], refused: [0, -1, 1.5] },
  ],
  ["n", both, { says: "an integer from 1 to 128", allowed: [1, 128], refused: [0, 129, -1, 1.5, 1e9] }],
  ["top_logprobs", chatOnly, { says: "an integer from 0 to 20", allowed: [0, 20], refused: [-1, 21, 0.5] }],
  ["logprobs", ["/v1/completions"], { says: "an integer from 0 to 20", allowed: [0, 20], refused: [-1, 21, 0.5] }],
  ["best_of", ["/v1/completions"], { says: "an integer from 1 to 128", allowed: [1, 128], refused: [0, 129, 1.5] }],
  ["seed", both, { says: "must be an integer", allowed: [0, -1, 1.0, 2 ** 53, 1e300], refused: [0.5] }],
  [
    "dimensions",
    ["/v1/embeddings"],
    { says: "an integer from 1 to 65536", allowed: [1, 65_536], refused: [0, 65_537, 1.5] },
  ],
];

describe.each(numbers)("%s", (field, paths, { says, allowed, refused }) => {
  test.each([...paths])("on %s accepts its bounds and refuses what lies beyond, with the range", async (path) => {
    for (const value of allowed) expect([value, (await send(path, { [field]: value }))[0]]).toEqual([value, 200]);
    for (const value of refused) {
      const [status, message] = await send(path, { [field]: value });
      expect([value, status]).toEqual([value, 400]);
      expect(message).toStartWith(`${field}: `);
      expect(message).toContain(says);
    }
  });

  test.each([...paths])("on %s refuses a number that overflows, and accepts null as absent", async (path) => {
    const [status, message] = await send(path, { [field]: "__RAW__" }, "1e400");
    expect(status).toBe(400);
    expect(message).toStartWith(`${field}: `);
    expect((await send(path, { [field]: null }))[0]).toBe(200);
  });
});

interface Node {
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  anyOf?: Node[];
  oneOf?: Node[];
  $ref?: string;
}

/** JSON types that a schema lets in, at its top. */
function typesOf(node: Node): Set<string> {
  const branches = node.anyOf ?? node.oneOf;
  if (branches) return new Set(branches.flatMap((branch) => [...typesOf(branch)]));
  if (node.enum) return new Set(node.enum.map((value) => typeof value));
  if (node.const !== undefined) return new Set([typeof node.const]);
  const types = ([] as string[]).concat(node.type ?? []);
  return new Set(types.map((type) => (type === "integer" ? "number" : type)));
}

const samples: Readonly<Record<string, unknown>> = {
  null: null,
  boolean: true,
  number: 7,
  string: "seven",
  array: [],
  object: {},
};

interface ObjectNode {
  properties?: Record<string, Node>;
  required?: string[];
}

const fields = Object.entries(operations).flatMap(([path, { schema }]) => {
  const root = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as ObjectNode & {
    $ref?: string;
    $defs?: Record<string, ObjectNode>;
  };
  const { properties = {}, required = [] } = root.$defs?.[root.$ref?.replace("#/$defs/", "") ?? ""] ?? root;
  return Object.entries(properties).map(([field, node]) => ({
    path: path as Path,
    field,
    types: typesOf(node),
    required: required.includes(field),
  }));
});

describe("wrong types", () => {
  test("every parameter with a numeric bound is in the table above", () => {
    const numeric = fields.filter(({ types, field }) => types.has("number") && !["prompt", "input"].includes(field));
    const listed = numbers.flatMap(([field, paths]) => paths.map((path) => `${path} ${field}`));
    // `seed` has no bound that JSON Schema could state.
    const found = numeric.map(({ path, field }) => `${path} ${field}`);
    expect(listed.sort()).toEqual([...new Set([...found, ...both.map((path) => `${path} seed`)])].sort());
  });

  test.each(fields)("$field on $path", async ({ path, field, types, required }) => {
    let refused = 0;
    for (const [type, value] of Object.entries(samples)) {
      if (types.has(type)) continue;
      const [status, message] = await send(path, { [field]: value });
      expect([type, status]).toEqual([type, 400]);
      expect(message).toStartWith(`${field}: `);
      expect(message).toMatch(/must be /);
      expect(message.length).toBeLessThan(400);
      refused++;
    }
    expect(refused).toBeGreaterThan(1);
    if (required) {
      const [status, message] = await send(path, { [field]: undefined });
      expect(status).toBe(400);
      expect(message).toStartWith(`${field}: is required and must be `);
    }
  });

  test("numbers in strings, booleans as numbers and the like are not converted", async () => {
    for (const changes of [{ temperature: "1" }, { max_tokens: "10" }, { n: true }, { stream: "true" }, { stream: 1 }]) {
      expect((await send("/v1/chat/completions", changes))[0]).toBe(400);
    }
  });
});

describe("messages of a chat", () => {
  const user = { role: "user", content: "Hi" };
  const wrong: readonly [name: string, messages: unknown, says: RegExp][] = [
    ["none", [], /^messages: must be an array of at least 1 item/],
    ["a text", ["Hi"], /^messages\[0\]: must be an object/],
    ["null", [null], /^messages\[0\]: must be an object/],
    ["a message without role", [{ content: "Hi" }], /^messages\[0\]\.role: .*"system".*"tool"/],
    ["an unknown role", [user, { role: "wizard", content: "x" }], /^messages\[1\]\.role: must be one of "system", "developer", "user", "assistant", "tool", "function"/],
    ["a role of the wrong type", [{ role: 7, content: "x" }], /^messages\[0\]\.role: /],
    ["a message without content", [{ role: "user" }], /^messages\[0\]\.content: is required and must be a string or an array/],
    ["content of the wrong type", [{ role: "user", content: 7 }], /^messages\[0\]\.content: must be a string or an array.*got 7/],
    ["content null of a user", [{ role: "user", content: null }], /^messages\[0\]\.content: /],
    ["no content parts", [{ role: "user", content: [] }], /^messages\[0\]\.content: .*at least 1/],
    ["a part of an unknown type", [{ role: "user", content: [{ type: "video", video: "x" }] }], /^messages\[0\]\.content\[0\]\.type: must be one of "text", "image_url", "input_audio", "file", "refusal"/],
    ["a text part without text", [{ role: "user", content: [{ type: "text" }] }], /^messages\[0\]\.content\[0\]\.text: is required and must be a string/],
    ["an image part without url", [{ role: "user", content: [{ type: "text", text: "a" }, { type: "image_url", image_url: {} }] }], /^messages\[0\]\.content\[1\]\.image_url\.url: is required/],
    ["a tool message without its call", [user, { role: "tool", content: "x" }], /^messages\[1\]\.tool_call_id: is required/],
    ["a call without id", [{ role: "assistant", tool_calls: [{ type: "function" }] }], /^messages\[0\]\.tool_calls\[0\]\.id: is required/],
    ["arguments that are no text", [{ role: "assistant", tool_calls: [{ id: "a", type: "function", function: { name: "f", arguments: {} } }] }], /^messages\[0\]\.tool_calls\[0\]\.function\.arguments: must be a string/],
    ["a name that is too long", [{ role: "user", content: "x", name: "n".repeat(257) }], /^messages\[0\]\.name: must be a string of at most 256 characters/],
  ];

  test.each(wrong)("%s: the message names the place", async (_name, messages, says) => {
    const [status, message] = await send("/v1/chat/completions", { messages });
    expect(status).toBe(400);
    expect(message).toMatch(says);
  });

  test("every decided role and part is accepted", async () => {
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
      { role: "assistant", content: null, tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }] },
      { role: "tool", content: "a", tool_call_id: "c" },
      { role: "assistant", content: [{ type: "refusal", refusal: "no" }] },
      { role: "function", name: "f", content: "a" },
    ];
    expect((await send("/v1/chat/completions", { messages }))[0]).toBe(200);
  });
});

describe("parameters with a structure", () => {
  const wrong: readonly [name: string, path: Path, changes: Record<string, unknown>, says: RegExp][] = [
    ["an empty model id", "/v1/chat/completions", { model: "" }, /^model: must be a string of 1 to 256 characters \(got an empty string\)/],
    ["a model id of 257 characters", "/v1/chat/completions", { model: "m".repeat(257) }, /^model: must be a string of 1 to 256 characters \(got a string of 257/],
    ["an empty stop string", "/v1/chat/completions", { stop: "" }, /^stop: must be a string of 1 to 1024 characters or an array/],
    ["17 stop strings", "/v1/chat/completions", { stop: Array(17).fill("a") }, /^stop: .*at most 16 items/],
    ["an empty stop string in a list", "/v1/chat/completions", { stop: ["a", ""] }, /^stop\[1\]: must be a string of 1 to 1024 characters/],
    ["a number among stop strings", "/v1/chat/completions", { stop: ["a", 7] }, /^stop\[1\]: must be a string/],
    ["a bias above 100", "/v1/chat/completions", { logit_bias: { 5: 101 } }, /^logit_bias\.5: must be a number from -100 to 100 \(got 101\)/],
    ["a bias that is no number", "/v1/chat/completions", { logit_bias: { 5: "a" } }, /^logit_bias\.5: must be a number from -100 to 100/],
    ["a label that is no text", "/v1/chat/completions", { metadata: { a: 7 } }, /^metadata\.a: must be a string of at most 512 characters/],
    ["a label of 513 characters", "/v1/chat/completions", { metadata: { a: "x".repeat(513) } }, /^metadata\.a: must be a string of at most 512 characters/],
    ["a response format without type", "/v1/chat/completions", { response_format: {} }, /^response_format\.type: .*"text", "json_object", "json_schema"/],
    ["an unknown response format", "/v1/chat/completions", { response_format: { type: "xml" } }, /^response_format\.type: must be one of "text", "json_object", "json_schema"/],
    ["a json_schema without schema", "/v1/chat/completions", { response_format: { type: "json_schema" } }, /^response_format\.json_schema: is required/],
    ["a json_schema without name", "/v1/chat/completions", { response_format: { type: "json_schema", json_schema: { name: "" } } }, /^response_format\.json_schema\.name: must be a string of 1 to 64/],
    ["a tool without type", "/v1/chat/completions", { tools: [{}] }, /^tools\[0\]\.type: is required/],
    ["a function without name", "/v1/chat/completions", { tools: [{ type: "function", function: {} }] }, /^tools\[0\]\.function\.name: is required/],
    ["513 tools", "/v1/chat/completions", { tools: Array(513).fill({ type: "function" }) }, /^tools: must be an array of at most 512 items/],
    ["an unknown tool choice", "/v1/chat/completions", { tool_choice: "sometimes" }, /^tool_choice: must be one of "none", "auto", "required" or an object/],
    ["a tool choice without type", "/v1/chat/completions", { tool_choice: {} }, /^tool_choice\.type: is required/],
    ["include_usage as a text", "/v1/chat/completions", { stream_options: { include_usage: "yes" } }, /^stream_options\.include_usage: must be true or false/],
    ["an empty list of prompts", "/v1/completions", { prompt: [] }, /^prompt: .*(at least|1 to)/],
    ["a text and a token", "/v1/completions", { prompt: ["a", 1] }, /^prompt(\[\d\])?: /],
    ["a negative token", "/v1/completions", { prompt: [1, -1] }, /^prompt\[1\]: must be an integer of at least 0/],
    ["half a token", "/v1/completions", { prompt: [1, 1.5] }, /^prompt\[1\]: must be an integer/],
    ["an empty list of tokens", "/v1/completions", { prompt: [[1], []] }, /^prompt\[1\]: /],
    ["an empty input", "/v1/embeddings", { input: "" }, /^input: /],
    ["an empty text among inputs", "/v1/embeddings", { input: ["a", ""] }, /^input\[1\]: must be a string of at least 1 character/],
    ["2,049 inputs", "/v1/embeddings", { input: Array(2049).fill("a") }, /^input: .*2048/],
    ["an unknown encoding", "/v1/embeddings", { encoding_format: "int8" }, /^encoding_format: must be one of "float", "base64"/],
  ];

  test.each(wrong)("%s on %s", async (_name, path, changes, says) => {
    const [status, message] = await send(path, changes);
    expect([status, message]).toEqual([400, expect.stringMatching(says)] as never);
    expect(message.length).toBeLessThan(400);
  });

  test("a name in logit_bias that is no token id is called that, not a wrong value", async () => {
    const [status, message] = await send("/v1/chat/completions", { logit_bias: { hello: 5 } });
    expect(status).toBe(400);
    expect(message).toStartWith("logit_bias");
    expect(message).not.toContain("got 5");
    expect(message).toMatch(/token id|name|key/);
  });

  test("a name in metadata that is too long is called that, not a wrong value, and not repeated", async () => {
    const [status, message] = await send("/v1/chat/completions", { metadata: { ["k".repeat(65)]: "value" } });
    expect(status).toBe(400);
    expect(message).toStartWith("metadata");
    expect(message).toContain("64");
    expect(message).not.toContain("512");
    expect(message).not.toContain("k".repeat(65));
  });

  test("values of texts are described, not quoted", async () => {
    for (const changes of [{ temperature: "CANARY" }, { tool_choice: "CANARY" }, { encoding_format: "CANARY" }]) {
      const path = "encoding_format" in changes ? "/v1/embeddings" : "/v1/chat/completions";
      const [status, message] = await send(path, changes);
      expect(status).toBe(400);
      expect(message).not.toContain("CANARY");
    }
  });

  test("unknown parameters pass, whatever they hold", async () => {
    const changes = { x: 1, top_k: -5, min_p: "a", guided_json: { a: [null] }, service_tier: 7 };
    expect((await send("/v1/chat/completions", changes))[0]).toBe(200);
    expect(upstream.requests.at(-1)?.body).toMatchObject(changes);
  });

  test("a token limit above the model's context is refused with the context", async () => {
    for (const field of ["max_tokens", "max_completion_tokens"]) {
      expect((await send("/v1/chat/completions", { model: "small", [field]: 100 }))[0]).toBe(200);
      const [status, message] = await send("/v1/chat/completions", { model: "small", [field]: 101 });
      expect(status).toBe(400);
      expect(message).toBe(`${field}: must be at most 100, the context of \`small\` in tokens (got 101).`);
    }
  });

  test("an unknown model is 404, and a long or hostile id is not repeated whole", async () => {
    for (const model of ["nope", "a/../../b", "x".repeat(256), "\u0000\r\n", "<script>"]) {
      const response = await server.request("/v1/chat/completions", {
        body: { ...operations["/v1/chat/completions"].body, model },
      });
      expect(response.status).toBe(404);
      const { error } = (await response.json()) as { error: { code: string; message: string } };
      expect(error.code).toBe("model_not_found");
      expect(error.message.length).toBeLessThan(300);
    }
  });
});
