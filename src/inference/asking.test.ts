// Tests in which format an engine is asked, and what it gets of data that the gateway sealed for the client.
import { describe, expect, test } from "bun:test";
import { ByteSpan } from "../base/bytes/byte-span.ts";
import type { EngineFormats } from "../domain/models/engine.ts";
import type { ConversationOperation } from "../domain/models/operation.ts";
import type { AccountSeal } from "../domain/seal.ts";
import { DecodedRequest } from "../requests/decoded-request.ts";
import { dialects } from "../requests/dialects/dialects.ts";
import { sealReasoning } from "../requests/dialects/response/sealed-reasoning.ts";
import { factsOf } from "../requests/facts.ts";
import { type Asking, askingOf } from "./asking.ts";

type Json = Record<string, unknown>;

const ours = "ours:";
const seal: AccountSeal = {
  pseudonym: (use, value) => `${use} ${value}`,
  seal: (text) => ours + Buffer.from(text).toString("base64url"),
  open: (sealed) =>
    sealed.startsWith(ours) ? Buffer.from(sealed.slice(ours.length), "base64url").toString() : undefined,
};

function decodedOf(operation: ConversationOperation, body: Json): DecodedRequest {
  const dialect = dialects[operation];
  return new DecodedRequest(dialect, ByteSpan.of(JSON.stringify(body)), factsOf(dialect, body));
}

function asked(
  operation: ConversationOperation,
  body: Json,
  formats: EngineFormats | undefined,
  context?: number,
): Asking {
  const request = decodedOf(operation, body);
  const engine = formats ? { formats } : {};
  return askingOf(request, { engine, model: "theirs", context, recording: false, seal });
}

const bodyOf = ({ body }: Asking): Json => JSON.parse(typeof body === "string" ? body : body.solid.text) as Json;

const chat = { model: "m", messages: [{ role: "user", content: "Hi" }] };
const response = { model: "m", input: "Hi", store: false };
const message = { model: "m", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] };
const custom = { ...response, tools: [{ type: "custom", name: "patch" }] };

describe("the request sent to an engine", () => {
  test.each<[string, ConversationOperation, Json, EngineFormats | undefined, ConversationOperation]>([
    ["by chat completions where nobody knows what it speaks", "response", response, undefined, "chat"],
    ["by chat completions where it speaks these alone", "message", message, { chat: "whole" }, "chat"],
    [
      "in the client's format where it speaks it",
      "response",
      response,
      { chat: "whole", response: "whole" },
      "response",
    ],
    ["in the only format that it speaks", "chat", chat, { message: "whole" }, "message"],
    [
      "in the client's format where it knows functions, and the request has no other tools",
      ...(["response", response, { chat: "whole", response: "functions" }, "response"] as const),
    ],
    [
      "by chat completions where it knows functions, and the request has another tool",
      ...(["response", custom, { chat: "whole", response: "functions" }, "chat"] as const),
    ],
    [
      "in the client's format where it knows that in part, and no other at all",
      ...(["response", custom, { response: "functions" }, "response"] as const),
    ],
  ])("%s", (_, operation, body, formats, expected) => {
    const asking = asked(operation, body, formats);
    expect(asking.operation).toBe(expected);
    expect(asking.translation === undefined).toBe(expected === operation);
    expect(bodyOf(asking)["model"]).toBe("theirs");
  });
});

test("sends Responses to OpenAI's reasoning models, which refuse tools with an effort in a chat", () => {
  const operationOf = (model: string, formats: EngineFormats, operation: ConversationOperation = "message") => {
    const request = decodedOf(operation, operation === "chat" ? chat : message);
    return askingOf(request, { engine: { formats }, model, recording: false, seal }).operation;
  };
  const both = { chat: "whole", response: "whole" } as const;
  expect(operationOf("gpt-5.6-terra", both)).toBe("response");
  expect(operationOf("gpt-4.1", both)).toBe("chat");
  expect(operationOf("gpt-5.6-terra", { chat: "whole", response: "functions" })).toBe("chat");
  expect(operationOf("gpt-5.6-terra", both, "chat")).toBe("chat");
});

test("sends a cloud no chat member that the cloud refuses", () => {
  const thinking = { type: "thinking", thinking: "Look.", signature: "" };
  const turns = [
    { role: "user", content: "Hi" },
    { role: "assistant", content: [thinking, { type: "text", text: "Yes" }] },
    { role: "user", content: "Go on" },
  ];
  const request = decodedOf("message", { ...message, messages: turns, thinking: { type: "disabled" } });
  const sent = (address: string) =>
    bodyOf(
      askingOf(request, {
        engine: { formats: { chat: "whole" }, server: { address, port: 443 } },
        ...{ model: "qwen/qwen3-32b", recording: false, seal },
      }),
    );
  expect(sent("api.groq.com")).toEqual({
    ...{ model: "qwen/qwen3-32b", max_tokens: 9, reasoning_effort: "none" },
    messages: [
      { role: "user", content: "Hi" },
      { role: "assistant", content: "Yes" },
      { role: "user", content: "Go on" },
    ],
  });
  expect(sent("127.0.0.1")).toMatchObject({ chat_template_kwargs: {}, messages: [{}, { reasoning: "Look." }, {}] });
});

describe("a server that was detected as speaking Messages", () => {
  const found = { chat: "whole", message: "functions" } as const;
  const user = (...content: Json[]) => ({ ...message, messages: [{ role: "user", content }] });
  const source = { type: "text", media_type: "text/plain", data: "a" };
  const tool = { name: "look", input_schema: { type: "object" } };

  test("sends Messages for requests that most Messages servers support", () => {
    for (const body of [
      user({ type: "text", text: "a" }, { type: "image", source: { type: "url", url: "https://a.test/b.png" } }),
      user({ type: "tool_result", tool_use_id: "a", is_error: true, content: [{ type: "text", text: "No" }] }),
      { ...message, tools: [tool], tool_choice: { type: "any" }, thinking: { type: "adaptive" } },
      { ...message, output_config: { effort: "high" }, context_management: { edits: [] } },
    ]) {
      expect([body, asked("message", body, found).operation]).toEqual([body, "message"]);
    }
  });

  test("sends a chat if a Messages server would silently ignore a part of the request", () => {
    for (const body of [
      user({ type: "document", source }),
      user({ type: "tool_result", tool_use_id: "a", content: [{ type: "document", source }] }),
      user({ type: "search_result", source: "a", title: "A", content: [] }),
      { ...message, messages: [...message.messages, { role: "system", content: "Be brief." }] },
      { ...message, output_config: { format: { type: "json_schema", schema: {} } } },
      { ...message, thinking: { type: "disabled" } },
      { ...message, tools: [tool], tool_choice: { type: "tool", name: "look" } },
      { ...message, tools: [tool], tool_choice: { type: "none" } },
      { ...message, tools: [tool], tool_choice: { type: "auto", disable_parallel_tool_use: true } },
      { ...message, tools: [{ ...tool, defer_loading: true }] },
    ]) {
      expect([body, asked("message", body, found).operation]).toEqual([body, "chat"]);
      expect(asked("message", body, { chat: "whole", message: "whole" }).operation).toBe("message");
    }
  });
});

test("does not parse a request that an engine gets unchanged", () => {
  const text = JSON.stringify(chat);
  const request = new DecodedRequest(dialects.chat, ByteSpan.of(text), factsOf(dialects.chat, JSON.parse(text)));
  Object.defineProperty(request, "body", { get: () => expect.unreachable("The body was parsed.") });
  const { body } = askingOf(request, { engine: {}, model: "m", recording: false, seal });
  expect(typeof body === "string" ? body : body.solid.text).toBe(text);
});

test("sends a chat to a detected Responses server if it may ignore an output format or a file", () => {
  const found = { chat: "whole", response: "functions" } as const;
  const file = { type: "input_file", file_data: "data:text/plain;base64,YQ==" };
  for (const body of [
    { ...response, text: { format: { type: "json_object" } } },
    { ...response, input: [{ role: "user", content: [file] }] },
  ]) {
    expect([body, asked("response", body, found).operation]).toEqual([body, "chat"]);
  }
  for (const text of [{ verbosity: "low" }, { format: { type: "text" } }, null]) {
    expect(asked("response", { ...response, text }, found).operation).toBe("response");
  }
});

describe("a server that speaks Responses", () => {
  const native = { response: "whole" } as const;
  const inputFor = (...items: readonly Json[]) =>
    bodyOf(asked("response", { ...response, input: items }, native))["input"];
  const said = { type: "message", role: "user", content: "Hi" };

  test("sends a Responses server the summary of a conversation that the gateway compacted", () => {
    const compaction = { type: "compaction", id: "cmp_1", encrypted_content: seal.seal("They met in Oslo.") };
    expect(inputFor(compaction, said)).toEqual([{ type: "message", role: "user", content: "They met in Oslo." }, said]);
  });

  const head = { type: "reasoning", id: "rs_1", summary: [] };
  const thought = { ...head, encrypted_content: sealReasoning(seal, { text: "Oslo?", proof: undefined }) };
  const text = { ...head, content: [{ type: "reasoning_text", text: "Oslo?" }] };

  test("sends a Responses server its own sealed reasoning and none that the gateway sealed", () => {
    const proof = { kind: "encrypted", data: "gAAA" } as const;
    const wrapped = { ...head, encrypted_content: sealReasoning(seal, { text: "", proof }) };
    const own = { ...head, encrypted_content: "gAAB" };
    expect(inputFor(thought, wrapped, own, said)).toEqual([{ ...head, encrypted_content: "gAAA" }, own, said]);
  });

  test("keeps the text of reasoning that the same Responses server wrote", () => {
    expect(inputFor(text, said)).toEqual([text, said]);
  });

  test.each([
    ["OpenAI's host", "m", "api.openai.com"],
    ["Azure's host for OpenAI's models", "m", "lab.openai.azure.com"],
    ["a model of OpenAI's", "gpt-5.6-sol", "proxy.test"],
  ])("sends a Responses server no reasoning text of another server at %s", (_, model, address) => {
    const request = decodedOf("response", { ...response, input: [text, said] });
    const engine = { formats: native, server: { address, port: 443 } };
    expect(bodyOf(askingOf(request, { engine, model, recording: false, seal }))["input"]).toEqual([said]);
  });

  test("returns reasoning that a Responses server sealed unchanged", () => {
    const compaction = { type: "compaction", id: "cmp_1", encrypted_content: "gAAA" };
    expect(inputFor(compaction, said)).toEqual([compaction, said]);
  });
});

test("sends a Messages server its own signed thinking and none that the gateway signed", () => {
  const thinking = (signature: string) => ({ type: "thinking", thinking: "Oslo?", signature });
  const content = [thinking(seal.seal("Oslo?")), thinking("EqQB"), { type: "text", text: "Yes." }];
  const messages = [
    { role: "user", content: "Hi" },
    { role: "assistant", content },
    { role: "assistant", content: [thinking(seal.seal("Rome?"))] },
    { role: "user", content: "And?" },
  ];
  const sent = bodyOf(asked("message", { ...message, messages }, { message: "whole" }));
  expect(sent["messages"]).toEqual([messages[0], { role: "assistant", content: content.slice(1) }, messages[3]]);
});

describe("the max_tokens that Messages needs when the context leaves too little room", () => {
  const long = { ...message, max_tokens: 32_000, messages: [{ role: "user", content: "word ".repeat(4_000) }] };
  const limitFor = (formats: EngineFormats | undefined, context: number | undefined, body: Json = long) =>
    bodyOf(asked("message", body, formats, context))["max_tokens"];

  test("sets max_tokens to the remaining context with a margin for the prompt", () => {
    for (const formats of [undefined, { message: "functions" }] as const) {
      const limit = Number(limitFor(formats, 32_768));
      expect(limit).toBeGreaterThan(24_000);
      expect(limit).toBeLessThan(32_768 - 5_000);
    }
  });

  test("sets max_tokens to no less than a useful answer and no more than the context", () => {
    expect(limitFor(undefined, 5_000)).toBe(1_024);
    expect(limitFor(undefined, 512)).toBe(512);
  });

  test("leaves room in max_tokens for the chat template of a short prompt", () => {
    expect(Number(limitFor(undefined, 8_192, { ...message, max_tokens: 32_000 }))).toBeLessThan(8_192 - 100);
  });

  test("sets a fitting max_tokens if a client of another format named none", () => {
    const chatLimit = (context: number, body: Json = chat) =>
      bodyOf(asked("chat", body, { message: "whole" }, context))["max_tokens"];
    expect(Number(chatLimit(8_192))).toBeLessThan(8_192 - 100);
    expect(chatLimit(200_000)).toBe(32_000);
    expect(chatLimit(8_192, { ...chat, max_tokens: 8_192 })).toBe(8_192);
  });

  test("keeps max_tokens where it fits, where the context is unknown, and for Anthropic", () => {
    expect(limitFor(undefined, 200_000)).toBe(32_000);
    expect(limitFor(undefined, undefined)).toBe(32_000);
    expect(limitFor({ message: "whole" }, 32_768)).toBe(32_000);
    expect(limitFor({ message: "functions" }, 32_768, message)).toBe(9);
  });
});

test("raises a limit below the minimum of Responses servers, for clients of other formats only", () => {
  const limit = (operation: ConversationOperation, body: Json, formats: EngineFormats) => {
    const sent = bodyOf(asked(operation, body, formats));
    return sent["max_output_tokens"] ?? sent["max_tokens"];
  };
  const responses = { response: "whole" } as const;
  for (const [low, raised] of [
    [1, 16],
    [15, 16],
    [16, 16],
    [17, 17],
  ]) {
    expect(limit("message", { ...message, max_tokens: low }, responses)).toBe(raised);
    expect(limit("chat", { ...chat, max_completion_tokens: low }, responses)).toBe(raised);
  }
  expect(limit("response", { ...response, max_output_tokens: 1 }, responses)).toBe(1);
  expect(limit("message", { ...message, max_tokens: 1 }, { chat: "whole" })).toBe(1);
});

describe("the limit that a hard-stop quota leaves", () => {
  const reported = (operation: ConversationOperation, body: Json, mostTokens: number, spoken = operation) => {
    const dialect = dialects[operation];
    const request = new DecodedRequest(dialect, ByteSpan.of(JSON.stringify(body)), factsOf(dialect, body));
    const engine = { formats: { [spoken]: "whole" } };
    const { capped, body: sent } = askingOf(request, {
      ...{ engine, model: "theirs", context: 200_000, mostTokens },
      ...{ recording: false, seal },
    });
    const written = bodyOf({ body: sent } as Asking);
    return [capped, written["max_tokens"] ?? written["max_output_tokens"]];
  };
  const thinking = { type: "enabled", budget_tokens: 30_000 };
  const long = { ...message, max_tokens: 32_000 };

  test("sends the quota's remainder as the limit of a stream, but at least the server's minimum", () => {
    expect(reported("message", { ...long, stream: true }, 500)).toEqual([500, 500]);
    expect(reported("message", { ...long, stream: true, thinking }, 500)).toEqual([30_001, 30_001]);
    expect(reported("message", { ...long, max_tokens: 30_001, stream: true, thinking }, 500)).toEqual([
      undefined,
      30_001,
    ]);
    expect(reported("response", { ...response, stream: true }, 3)).toEqual([16, 16]);
  });

  test("sends the quota's exact remainder as the limit of an answer without a stream", () => {
    expect(reported("message", long, 500)).toEqual([500, 500]);
    expect(reported("message", { ...long, thinking }, 30_001)).toEqual([30_001, 30_001]);
    expect(reported("response", response, 16)).toEqual([16, 16]);
  });

  test("refuses a request without a stream if the quota leaves less than the server's minimum", () => {
    expect(() => reported("message", { ...long, thinking }, 30_000)).toThrow(
      "max_tokens: cannot be kept: a quota with a hard stop has 30000 tokens left for this answer, and its model server takes no limit below 30001 beside the rest of this request, such as a budget for thinking. Ask for less of that, with `stream: true`",
    );
    expect(() => reported("response", response, 15)).toThrow(
      "no limit below 16 beside the rest of this request, such as",
    );
    expect(() => reported("chat", { ...chat, max_tokens: 3 }, 15, "response")).toThrow(
      "no limit below 16 beside the rest",
    );
    // The client's own limit is forwarded even below the server's minimum, because that server then answers with its
    // own error.
    expect(reported("response", { ...response, max_output_tokens: 3 }, 15)).toEqual([undefined, 3]);
  });
});
