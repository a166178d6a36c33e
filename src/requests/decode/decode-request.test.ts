// Tests that the byte scan of a request agrees with parsing and checking; a body that the scan cannot handle is parsed.

import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { JsonWriter } from "../../../tests/support/json-writer.ts";
import {
  asCjson,
  asGo,
  asGoVersion2,
  byLowerCase,
  byUpperCase,
  type Leniency,
  readExactly,
  readLeniently,
  type Structure,
} from "../../../tests/support/lenient-json.ts";
import { ValueMaker } from "../../../tests/support/value-maker.ts";
import { ByteSpan } from "../../base/bytes/byte-span.ts";
import { GatewayError } from "../../base/errors.ts";
import { capacity } from "../../base/text/json-bytes.ts";
import type { Operation } from "../../domain/models/operation.ts";
import type { DecodedRequest } from "../decoded-request.ts";
import { dialects } from "../dialects/dialects.ts";
import { decodeRequest, parsedRequest } from "./decode-request.ts";
import { alternatives, inline, type Node } from "./json-schema.ts";

const limits = { bodyBytes: 10_000_000, depth: 16, messages: 50 };
const operations = ["chat", "completion", "embedding", "response", "message"] as const;

type Decode = typeof decodeRequest;

const head = Buffer.from("POST / HTTP/1.1\r\n\r\n");

/** Returns the body in a buffer behind a request head, where received bodies usually lie. */
function behindHead(body: string | Uint8Array): ByteSpan {
  const received = Buffer.concat([head, Buffer.from(body)]);
  return new ByteSpan(received, head.length, received.length);
}

function amongOthers(body: string | Uint8Array): ByteSpan {
  const received = Buffer.concat([head, Buffer.from(body), Buffer.from('\xff"}')]);
  return new ByteSpan(received, head.length, received.length - 4);
}

/** Returns all facts of the request, or the reason of its refusal. */
function outcomeOf(decode: Decode, operation: Operation, text: string | Uint8Array, within = limits) {
  try {
    const request = decode(operation, behindHead(text), within);
    const { modelStart: _, modelEnd: __, maySeal: _______, unknownMembers: _________, ...all } = request;
    const {
      userStart: ___,
      userEnd: ____,
      metadataStart: _____,
      metadataEnd: ______,
      isolating: ________,
      ...facts
    } = all;
    return { ...facts, ...bodyOf(decode(operation, amongOthers(text), within)) };
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    return { code: error.code, message: error.message };
  }
}

function bodyOf(request: DecodedRequest) {
  const { endUser, metadata, text, body, members, bodyBytes, maxCompletionTokens, limitHolds } = request;
  const isolating = request.isolating?.map((member) => [member.name, request.valueOf(member)]);
  return {
    endUser,
    metadata,
    isolating,
    text,
    body,
    members: [...members],
    bodyBytes,
    maxCompletionTokens,
    limitHolds,
  };
}

/** A seal that opens every text, so that all text may be sealed by the gateway. */
const opensAll = { seal: (text: string) => text, open: (text: string) => text };

/** Reports whether the byte scan was enough. Fails if the scan and parsing disagree. */
function isReadInOnePass(operation: Operation, text: string | Uint8Array, within = limits): boolean {
  const parsed = outcomeOf(parsedRequest, operation, text, within);
  const outcome = outcomeOf(decodeRequest, operation, text, within);
  if (!Bun.deepEquals(outcome, parsed, true)) {
    expect({ text: text.toString(), outcome }).toEqual({ text: text.toString(), outcome: parsed });
  }
  if ("code" in parsed) return false;
  const request = decodeRequest(operation, amongOthers(text), within);
  if (request.modelStart === 0) return false;
  const { bytes, model, modelStart, modelEnd } = request;
  expect(JSON.parse(bytes.view.toString("utf8", modelStart, modelEnd))).toBe(model);
  if (!request.maySeal) expect(request.dialect.opened?.(request.body, opensAll, false)).toBeUndefined();
  return true;
}

describe.each([...operations])("requests for %s in any form and spelling", (operation) => {
  const root = z.toJSONSchema(dialects[operation].schema, { io: "input" }) as Node;
  const options = alternatives(inline(root, root));

  function* texts(seed: number, count: number, isChanged: boolean, isBroken: boolean): Generator<string> {
    const maker = new ValueMaker(seed);
    for (let i = 0; i < count; i++) {
      let value = maker.like(options);
      while (isChanged && maker.chance(0.6)) value = maker.changed(value);
      const writer = new JsonWriter(maker);
      const text = writer.write(value);
      yield isBroken ? writer.broken(text) : text;
    }
  }

  test.each([
    ["as the schema asks", 1, 1_500, false, false, 0.08],
    ["with something changed", 2, 1_500, true, false, 0.04],
    ["with characters changed", 3, 3_000, false, true, 0.03],
  ] as const)("decodes requests %s alike by scan and by parsing", (_, seed, count, isChanged, isBroken, minShare) => {
    let quick = 0;
    for (const text of texts(seed, count, isChanged, isBroken)) if (isReadInOnePass(operation, text)) quick++;
    expect(quick / count).toBeGreaterThan(minShare);
  });
});

/** Members of a request that the gateway reads, in any format. */
const read: Structure = {
  ...Object.fromEntries(
    "model stream n best_of max_tokens max_completion_tokens store metadata suffix functions prompt input instructions system max_output_tokens background previous_response_id conversation"
      .split(" ")
      .map((name) => [name, "value"] as const),
  ),
  stream_options: { include_usage: "value" },
  messages: [
    {
      role: "value",
      content: [{ type: "value", text: "value", image_url: { url: "value" } }],
      tool_calls: [{ id: "value", type: "value", function: { name: "value", arguments: "value" } }],
      function_call: "value",
    },
  ],
  response_format: { type: "value", json_schema: { name: "value", schema: "value" } },
};

/** A tool in the form of each format. */
const chatTool: Structure = { type: "value", function: { name: "value", description: "value", parameters: "value" } };
const toolOf: Readonly<Record<Operation, Structure>> = {
  ...{ chat: chatTool, completion: chatTool, embedding: chatTool },
  ...{ rerank: chatTool, score: chatTool, moderation: chatTool, decision: chatTool },
  ...{ speech: chatTool, transcription: chatTool, translation: chatTool },
  ...{ image: chatTool, image_edit: chatTool, image_variation: chatTool },
  ...{ tokenize: chatTool, detokenize: chatTool },
  response: { type: "value", name: "value", description: "value", parameters: "value" },
  message: { type: "value", name: "value", description: "value", input_schema: "value" },
};

/** The decisive members of a request. */
const decisive: Structure = {
  ...Object.fromEntries(
    "model stream n best_of max_tokens max_completion_tokens store stop suffix functions prompt input tools documents instructions system text max_output_tokens background previous_response_id conversation"
      .split(" ")
      .map((name) => [name, "value"] as const),
  ),
  stream_options: { include_usage: "value" },
  messages: "value",
  response_format: "value",
};

/** Ways to write a name that lenient parsers confuse with another. */
const twists: readonly ((name: string) => string)[] = [
  (name) => name.charAt(0).toUpperCase() + name.slice(1),
  (name) => name.toUpperCase(),
  (name) => name.replace("s", "\u017f"),
  (name) => name.replace("k", "\u212a"),
  (name) => name.replace("i", "\u0131"),
  (name) => `${name}\0`,
  (name) => `${name}\0s`,
  (name) => name,
  (name) => name.replaceAll("_", "-"),
  (name) => name.replaceAll(/_./g, ([, letter = ""]) => letter.toUpperCase()),
  (name) => name.replaceAll("_", ""),
  (name) => `${name.slice(0, 1)}_${name.slice(1)}-`,
];

/** Names that each are known in some object, but not in every object. */
const namesAnywhere = "id name type url model content role function include_usage max_tokens json_schema".split(" ");

/** Adds a member somewhere whose name equals or resembles another. */
function twisted(maker: ValueMaker, value: unknown): unknown {
  if (Array.isArray(value)) {
    const at = Math.floor(maker.fraction() * value.length);
    return value.map((item, i) => (i === at ? twisted(maker, item) : item));
  }
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value);
  const inner = members.filter(([, member]) => typeof member === "object" && member !== null);
  const [own, member] = maker.pick(inner.length > 0 && maker.chance(0.6) ? inner : members) ?? ["model", "m"];
  const name = maker.chance(0.8) ? own : maker.pick(namesAnywhere);
  if (typeof member === "object" && member !== null && maker.chance(0.8)) {
    return { ...value, [own]: twisted(maker, member) };
  }
  const another = [maker.pick(twists)(name), maker.pick<unknown>([member, "huge", 90_000, true, [], {}])] as const;
  return Object.fromEntries(maker.chance(0.5) ? [...members, another] : [another, ...members]);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe.each([...operations])("requests for %s with nearly repeated names", (operation) => {
  const root = z.toJSONSchema(dialects[operation].schema, { io: "input" }) as Node;
  const options = alternatives(inline(root, root));
  const leniencies = [asGo, asCjson, byLowerCase, byUpperCase];

  // hardening: F15
  test("accepts only requests that parsers with folded or repeated names read like the gateway", () => {
    const maker = new ValueMaker(4);
    const counts = { accepted: 0, misread: 0 };
    for (let i = 0; i < 2_500; i++) {
      const value = maker.like(options);
      const text = new JsonWriter(maker).write(maker.chance(0.9) ? twisted(maker, value) : value);
      const outcome = outcomeOf(decodeRequest, operation, text);
      const isMisreadBy = (leniency: Leniency, structure: Structure) =>
        !Bun.deepEquals(readLeniently(text, structure, leniency), readExactly(text, structure));
      const isMisread =
        isJson(text) &&
        (leniencies.some((leniency) => isMisreadBy(leniency, { ...read, tools: [toolOf[operation]] })) ||
          isMisreadBy(asGoVersion2, decisive));
      if (!("code" in outcome)) counts.accepted++;
      if (!isMisread) continue;
      counts.misread++;
      expect({ text, outcome }).toEqual({ text, outcome: expect.objectContaining({ code: "invalid_request" }) });
    }
    expect(counts.accepted).toBeGreaterThan(200);
    expect(counts.misread).toBeGreaterThan(150);
  });

  test("scans requests with a nearly repeated name with the same result as parsing", () => {
    const maker = new ValueMaker(5);
    for (let i = 0; i < 1_500; i++) {
      isReadInOnePass(operation, new JsonWriter(maker).write(twisted(maker, maker.like(options))));
    }
  });
});

test("sets the width of a chat to the most answers that are generated for it", () => {
  const of = (more: object) =>
    decodeRequest("chat", ByteSpan.of(JSON.stringify({ model: "m", messages: [user], ...more })), limits).width;
  expect([of({ n: 2 }), of({ best_of: 5 }), of({ n: 2, best_of: 5 }), of({ n: 7, best_of: null })]).toEqual([
    2, 5, 5, 7,
  ]);
  for (const best_of of [0, 129, 1.5, "5"]) expect(() => of({ best_of })).toThrow("best_of");
});

test("finds models that other gateways read beside `model`, by scan as by parsing, at every endpoint", () => {
  for (const [name, value] of Object.entries({
    fallbacks: ["huge"],
    context_window_fallbacks: [{ m: ["huge"] }],
    router_settings_override: {},
    api_base: "https://example.org",
    providerOptions: { gateway: { models: ["huge"] } },
    provideroptions: { gateway: { models: ["huge"] } },
    plugins: [{ id: "fusion" }],
    tools: [{ type: "openrouter:fusion" }],
  })) {
    const endpoints = {
      ...{ chat: { messages: [user] }, completion: { prompt: "a" }, embedding: { input: "a" } },
      ...{ response: { input: "a" }, message: { messages: [user], max_tokens: 9 } },
    };
    for (const operation of operations) {
      const text = JSON.stringify({ model: "m", ...endpoints[operation], [name]: value });
      expect(isReadInOnePass(operation, text)).toBe(false);
      expect(outcomeOf(decodeRequest, operation, text)).toMatchObject({ code: "invalid_request" });
    }
  }
});

const user = { role: "user", content: "Hello" };
const call = { id: "c", type: "function", function: { name: "f", arguments: '{"a":"\\n"}' } };
const tool = { type: "function", function: { name: "f", parameters: { type: "object", properties: { a: {} } } } };
const responseTool = { type: "function", name: "f", parameters: { type: "object", properties: { filePath: {} } } };
const response = (more: Record<string, unknown>) =>
  JSON.stringify({ model: "m", input: "Hello", store: false, ...more });
const messageTool = {
  name: "f",
  input_schema: { type: "object", properties: { filePath: { type: ["string", "null"] } } },
};
const message = (more: Record<string, unknown>) =>
  JSON.stringify({ model: "m", max_tokens: 256, messages: [user], ...more });
const chat = (more: Record<string, unknown>) => JSON.stringify({ model: "m", messages: [user], ...more });

test.each<[unknown, string | undefined]>([
  [{}, undefined],
  [{ user: "ada" }, "ada"],
  [{ user: 'gr\u00fc\u00df"e' }, 'gr\u00fc\u00df"e'],
  [{ user: null, safety_identifier: null }, undefined],
  [{ user: "", metadata: { user_id: "m" } }, "m"],
  [{ user: "ada", safety_identifier: "s", metadata: { user_id: "m" } }, "s"],
  [{ user: "ada", safety_identifier: "" }, "ada"],
  [{ metadata: { user_id: 7 } }, undefined],
  [{ metadata: { user_id: "m", team: "a" } }, "m"],
])("reads the end user of %j as %j, scanned or parsed, in chats, Responses and Messages", (said, endUser) => {
  const chat = Buffer.from(
    JSON.stringify({ model: "m", messages: [{ role: "user", content: "Hi" }], ...(said as object) }),
  );
  const request = decodeRequest("chat", amongOthers(chat), limits);
  expect(request.modelEnd).toBeGreaterThan(0);
  expect(request.endUser).toBe(endUser);
  const response = JSON.stringify({ model: "m", input: "Hi", ...(said as object) });
  expect(decodeRequest("response", behindHead(response), limits).endUser).toBe(endUser);
  const message = { model: "m", max_tokens: 1, messages: [{ role: "user", content: "Hi" }], ...(said as object) };
  if (typeof (said as { metadata?: { user_id?: unknown } }).metadata?.user_id !== "number") {
    expect(decodeRequest("message", behindHead(JSON.stringify(message)), limits).endUser).toBe(endUser);
  }
});

/** Requests as agents send them, with many objects that no schema knows completely. */
const agents: Readonly<Partial<Record<Operation, object>>> = {
  response: {
    ...{ model: "m", instructions: "Be brief.", store: false, stream: true, metadata: { user_id: "u" } },
    input: [
      { type: "message", role: "developer", content: [{ type: "input_text", text: "Mind the <gap>\n" }] },
      { role: "user", content: "Hello" },
      { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "Hm" }] },
      { type: "function_call", call_id: "c", name: "f", arguments: '{"filePath":"a"}' },
      { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "1" }] },
    ],
    tools: [responseTool, { type: "custom", name: "patch", format: { type: "grammar", syntax: "lark" } }],
    text: { format: { type: "json_schema", name: "n", schema: { type: "object", properties: { aB: {} } } } },
  },
  message: {
    ...{ model: "m", max_tokens: 256, system: [{ type: "text", text: "Be brief." }], stream: true },
    messages: [
      { role: "user", content: [{ type: "text", text: "Hello" }] },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm" },
          { type: "tool_use", id: "t", name: "f", input: { filePath: "a", deep: [1, true, null, {}] } },
        ],
      },
      {
        role: "user",
        content: [{ type: "tool_result", tool_use_id: "t", content: [{ type: "text", text: "1" }] }],
      },
    ],
    tools: [messageTool],
    output_config: { format: { type: "json_schema", schema: { type: "object" } } },
  },
};
const plantedNames = [
  ...["type", "type", "type", "role", "id", "status", "phase", "content", "output", "source", "input", "text"],
  ...["cache_control", "previous_response_id", "conversation", "background", "user", "safety_identifier", "metadata"],
  ...["__proto__", "constructor", "Type", "n", "stop", "store", "stream_options", "messages", "user_id"],
];
/** Decisive members by item type: those that the gateway may have sealed, and the type of an item. */
const decisiveOf: Readonly<Record<string, string>> = {
  ...{ reasoning: "encrypted_content", compaction: "encrypted_content", thinking: "signature" },
  ...{ message: "type", function_call: "type" },
};
const plantedValues: readonly unknown[] = [
  ...[null, null, true, 1.5, -0, "", "text", "é😀", "\ud83d", [], {}, [[{ type: "input_file" }]]],
  ...["item_reference", "compaction", "reasoning", "message", "user", "assistant", "function", "openrouter:fusion"],
  ...["image", "input_image", "document", "thinking", ["image"], { type: "image" }, { image: "image" }],
  ...[[{ type: "document", source: { type: "text", data: "a" } }], { a: "b", id: "c", deep: { role: 7 } }],
];

/** Adds, removes or changes a member in some object. */
function planted(maker: ValueMaker, value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    const at = Math.floor(maker.fraction() * value.length);
    return value.map((item, i) => (i === at ? planted(maker, item) : item));
  }
  const members = Object.entries(value);
  const inner = members.filter(([, member]) => typeof member === "object" && member !== null);
  if (inner.length > 0 && maker.chance(0.75)) {
    const [name, member] = maker.pick(inner);
    return { ...value, [name]: planted(maker, member) };
  }
  const kind = members.find(([name]) => name === "type")?.[1];
  const name = (maker.chance(0.5) && decisiveOf[String(kind)]) || maker.pick(plantedNames);
  const others = members.filter(([other]) => other !== name);
  return Object.fromEntries(maker.chance(0.2) ? others : [...others, [name, maker.pick(plantedValues)]]);
}

test.each(["response", "message"] as const)(
  "scans agents' requests for %s with the same result as parsing, with sealed, stored and media items",
  (operation) => {
    const maker = new ValueMaker(7);
    let quick = 0;
    for (let i = 0; i < 2_000; i++) {
      let value: unknown = agents[operation];
      do value = planted(maker, value);
      while (maker.chance(0.4));
      if (isReadInOnePass(operation, new JsonWriter(maker).write(value))) quick++;
    }
    expect(quick).toBeGreaterThan(300);
  },
);

describe("requests that the byte scan decodes", () => {
  test.each<[string, Operation, string | Uint8Array]>([
    ["what most clients send", "chat", chat({ temperature: 0.7, max_tokens: 256, stream: true })],
    ["a request with space in it", "chat", JSON.stringify(JSON.parse(chat({ tools: [tool] })), null, 2)],
    ["one that asks for usage", "chat", chat({ stream: true, stream_options: { include_usage: true } })],
    ["other stream options", "chat", chat({ stream: true, stream_options: { include_usage: null, x: [1] } })],
    ["both names of the limit", "chat", chat({ max_tokens: 5, max_completion_tokens: 7 })],
    ["a limit that is null", "chat", chat({ max_completion_tokens: null, max_tokens: 5, n: 3 })],
    [
      "a conversation with calls",
      "chat",
      chat({ messages: [user, { content: null, role: "assistant", tool_calls: [call] }] }),
    ],
    ["tools and a format", "chat", chat({ tools: [tool], functions: [{}], response_format: { type: "json_object" } })],
    ["escapes", "chat", chat({ messages: [{ ...user, content: 'One "two"\n\\ \t\u0001 é 😀' }] })],
    [
      "escaped pairs of surrogates",
      "chat",
      String.raw`{"model":"m","messages":[{"role":"user","content":"\ud83d\ude00\u00e9\u20ac\u0041\ud83d \ude00\ud83d\ud83d\ude00"}]}`,
    ],
    [
      "a model whose name hides behind escapes",
      "chat",
      String.raw`{"model":"m\u00e9\n","messages":[{"role":"user","content":""}]}`,
    ],
    ["a model with a name that is no ASCII", "chat", chat({ model: "modèle" })],
    [
      "parts, media among them",
      "chat",
      chat({
        messages: [
          {
            ...user,
            content: [
              { type: "text", text: "What is this?" },
              { type: "image_url", image_url: { url: "data:," } },
            ],
          },
        ],
      }),
    ],
    ["what is to be kept", "chat", chat({ store: true, metadata: { a: "b" } })],
    ["labels of any kind", "chat", chat({ metadata: { ["x".repeat(65)]: [7], Model: null } })],
    ["what is not to be kept", "chat", chat({ store: false })],
    [
      "an empty content beside calls",
      "chat",
      chat({ messages: [{ role: "assistant", content: [], tool_calls: [call] }] }),
    ],
    [
      "a schema beside its type",
      "chat",
      chat({ response_format: { type: "json_schema", schema: { type: "object" } } }),
    ],
    [
      "a kind that is told last, with space before it",
      "chat",
      chat({}).replace(/}$/, ',"response_format":{"x":[1,         2],         "type":"json_object"}}'),
    ],
    ["members that no schema knows", "chat", chat({ top_k: 4, x: { y: [1, { z: null }] } })],
    ["a prompt", "completion", '{"model":"m","prompt":"Once","n":2,"best_of":3,"suffix":"."}'],
    ["several prompts", "completion", '{"model":"m","prompt":["Once","twice"],"n":2}'],
    ["a prompt of token ids", "completion", '{"model":"m","prompt":[1,2,3]}'],
    ["prompts of token ids", "completion", '{"model":"m","prompt":[[1,2,3],[4]],"echo":true}'],
    ["messages beside the prompt", "completion", '{"model":"m","prompt":"a","messages":[null,{"content":[null]}]}'],
    ["messages beside the texts", "embedding", '{"model":"m","input":"a","messages":[null],"prompt":7}'],
    ["texts to embed", "embedding", '{"model":"m","input":["a","b"],"encoding_format":"base64","stream":true}'],
    ["a text to answer", "response", response({ instructions: "Be brief.", max_output_tokens: 9 })],
    [
      "the items of an agent",
      "response",
      response({
        ...{ stream: true, include: ["reasoning.encrypted_content"], prompt_cache_key: "k", background: null },
        input: [
          { type: "message", role: "developer", content: [{ type: "input_text", text: "Mind the <gap>\n" }] },
          { role: "user", content: "Hello" },
          { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAA", content: null },
          { type: "function_call", call_id: "c", name: "f", arguments: '{"filePath":"a"}', id: null },
          { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "1" }], ok: true },
        ],
        tools: [responseTool, { type: "custom", name: "patch", format: { type: "grammar", syntax: "lark" } }],
        text: { format: { type: "json_schema", name: "n", schema: { type: "object", properties: { aB: {} } } } },
      }),
    ],
    ["what is to be worked on in the background", "response", response({ store: true, background: true })],
    ["what goes on from a response", "response", response({ previous_response_id: "resp_1" })],
    ["what goes on with a conversation", "response", response({ conversation: { id: "conv_1" } })],
    ["a message", "message", message({ system: "Be brief.", temperature: 1 })],
    [
      "the blocks of an agent",
      "message",
      message({
        stream: true,
        system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
        messages: [
          { role: "user", content: [{ cache_control: null, type: "text", text: "Hello" }] },
          {
            role: "assistant",
            content: [
              { type: "thinking", thinking: "Hm", signature: "s" },
              { type: "tool_use", id: "t", name: "f", input: { filePath: "a", deep: [1, true, null, {}] } },
            ],
          },
          {
            role: "user",
            content: [{ type: "tool_result", tool_use_id: "t", content: [{ type: "text", text: "1" }] }],
          },
        ],
        tools: [messageTool, { ...messageTool, type: "custom", strict: true }],
        ...{ metadata: { user_id: "u" }, tool_choice: { type: "auto" }, thinking: { type: "adaptive" } },
      }),
    ],
  ])("scans %s without parsing", (_, operation, text) => {
    expect(isReadInOnePass(operation, text)).toBe(true);
  });
});

describe("requests that the byte scan leaves to the parser", () => {
  test.each<[string, Operation, string | Uint8Array]>([
    ["a member that is there twice", "chat", '{"model":"m","messages":[],"model":"n"}'],
    ["a role that is there twice", "chat", '{"model":"m","messages":[{"role":"user","role":"tool","content":"a"}]}'],
    ["a name behind escapes", "chat", String.raw`{"mod\u0065l":"m","messages":[{"role":"user","content":"a"}]}`],
    ["what is no UTF-8", "chat", Buffer.from(chat({ user: "é" }), "latin1")],
    ["two documents", "chat", `${chat({})}{}`],
    ["nothing", "chat", ""],
    ["a text of an unknown kind beside the messages", "chat", chat({ messages: [{ ...user, text: "a", type: "b" }] })],
    ["a message with a type of its own", "chat", chat({ messages: [{ ...user, type: "message" }] })],
    [
      "a schema with escaped letters",
      "chat",
      String.raw`{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","x":"\u0061"}]}`,
    ],
    [
      "a schema with escaped slashes",
      "chat",
      String.raw`{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","x":"\/\/\/\/\/"}]}`,
    ],
    [
      "a schema with odd numbers",
      "chat",
      '{"model":"m","messages":[{"role":"user","content":"a"}],"tools":[{"type":"x","a":[1.50,1e3,-0,12345678901234567890,0.0000001]}]}',
    ],
    ["biases", "chat", chat({ logit_bias: { 17: 5 } })],
    ["more messages than may be", "chat", chat({ messages: new Array(51).fill(user) })],
    [
      "an object of very many members",
      "chat",
      chat({ x: Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`a${i}`, 1])) }),
    ],
    ["more names altogether than may be", "chat", chat({ x: new Array(50_000).fill({ a: 1, b: 2 }) })],
    ["more arrays altogether than may be", "chat", chat({ x: new Array(200_000).fill([]) })],
    ["more objects altogether than may be", "response", response({ x: new Array(200_000).fill({}) })],
    [
      "more objects in a tool than may be",
      "message",
      message({ tools: [{ name: "f", x: new Array(200_000).fill({}) }] }),
    ],
    ["an item that stands for a kept one", "response", response({ input: [{ type: "item_reference", id: "msg_1" }] })],
    ["an item without type and role", "response", response({ input: [{ id: "msg_1" }] })],
    ["an item whose role says nothing", "response", response({ input: [{ role: null, type: null, id: "msg_1" }] })],
    [
      "an image among the parts",
      "response",
      response({ input: [{ role: "user", content: [{ image_url: "data:,", type: "input_image" }] }] }),
    ],
    [
      "a kind of part that hides behind escapes",
      "response",
      String.raw`{"model":"m","input":[{"role":"user","content":[{"type":"input_im\u0061ge"}]}]}`,
    ],
    ["a tool that a server runs", "response", response({ tools: [{ type: "image_generation", model: "m" }] })],
    [
      "a document among the blocks",
      "message",
      message({ messages: [{ role: "user", content: [{ type: "document", source: { type: "text", data: "a" } }] }] }),
    ],
    [
      "an image in what a tool gave",
      "message",
      message({
        messages: [
          { role: "user", content: [{ type: "tool_result", tool_use_id: "t", content: [{ type: "image" }] }] },
        ],
      }),
    ],
    ["what is longer than the pass takes", "chat", chat({ user: "u", x: "x".repeat(capacity) })],
  ])("parses %s, with the same result", (_, operation, text) => {
    expect(isReadInOnePass(operation, text)).toBe(false);
  });

  test("reads requested tiers by scan and by parsing, and none where the text only mentions them", () => {
    const asked = { service_tier: "Priority", speed: "fast", inference_geo: "us" };
    expect(parsedRequest("chat", behindHead(chat(asked)), limits).askedTiers()).toEqual(["priority", "fast", "us"]);
    const escaped = chat({ service_tier: "priority" }).replace("service_tier", "service\\u005ftier");
    expect(decodeRequest("chat", behindHead(escaped), limits).askedTiers()).toEqual(["priority"]);
    expect(parsedRequest("chat", behindHead(escaped), limits).askedTiers()).toEqual(["priority"]);
    expect(decodeRequest("chat", behindHead(chat({ service_tier: "auto" })), limits).askedTiers()).toEqual([]);
    expect(decodeRequest("chat", behindHead(chat({ metadata: { speed: "fast" } })), limits).askedTiers()).toEqual([]);
  });

  test("removes one byte-order mark", () => {
    expect(isReadInOnePass("chat", `\ufeff${chat({})}`)).toBe(true);
    expect(isReadInOnePass("chat", `\ufeff\ufeff${chat({})}`)).toBe(false);
  });

  test("parses a body nested deeper than the limit, with the same result", () => {
    const nested = (depth: number) =>
      chat({ x: "[".repeat(depth) }).replace(/"(\[+)"/, (_, open) => open + "]".repeat(depth));
    for (const depth of [8, 64, 100]) {
      const within = { ...limits, depth };
      expect(isReadInOnePass("chat", nested(depth - 1), within)).toBe(depth <= 64);
      expect(isReadInOnePass("chat", nested(depth), within)).toBe(false);
    }
  });

  test("parses lengths beyond their limits, in characters of any kind, with the same result", () => {
    for (const [character, quick] of [
      ["x", 256],
      ["é", 128],
      ["😀", 64],
    ] as const) {
      for (const length of [quick, quick + 1, 256, 257]) {
        const name = character.repeat(length);
        expect(isReadInOnePass("chat", chat({ messages: [{ ...user, name }] }))).toBe(length <= quick);
      }
    }
  });
});

test("carries no facts from one request to the next", () => {
  expect(
    isReadInOnePass(
      "chat",
      chat({
        n: 4,
        max_tokens: 9,
        store: true,
        stream: true,
        messages: [{ ...user, content: [{ type: "file", file: {} }] }],
      }),
    ),
  ).toBe(true);
  expect(isReadInOnePass("chat", chat({}))).toBe(true);
  const kept = response({
    background: true,
    previous_response_id: "resp_1",
    input: [{ ...user, encrypted_content: "" }],
  });
  expect(decodeRequest("response", ByteSpan.of(kept), limits)).toMatchObject({
    ...{ background: true, namesKept: true, maySeal: true },
  });
  expect(decodeRequest("response", ByteSpan.of(response({})), limits)).toMatchObject({
    ...{ background: false, namesKept: false, maySeal: false, store: false },
  });
  const request = decodeRequest("chat", ByteSpan.of(chat({})), limits);
  expect(request).toMatchObject({ width: 1, tokenLimit: undefined, store: undefined, stream: false, hasMedia: false });
});
