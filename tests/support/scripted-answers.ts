// Answers for the scripted upstream beyond plain chat: tool calls, and embeddings in whichever encoding it likes.
import { encodeEmbedding } from "../../src/wire/embedding.ts";
import { chunk, json, type Script, usage } from "./scripted-upstream.ts";

export const weatherTool = {
  type: "function" as const,
  function: {
    name: "get_weather",
    description: "Weather of a city.",
    parameters: {
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
      additionalProperties: false,
    },
  },
};
export const weatherCall = {
  id: "call_1",
  type: "function" as const,
  function: { name: "get_weather", arguments: '{"city":"Oslo"}' },
};
export const weatherResult = "4 degrees and rain";

/** Calls the tool; once the conversation holds the tool's result, says it. Streams the arguments in two pieces. */
export function toolScript(): Script {
  return (request, res) => {
    const conversation = request.body["messages"] as { role: string; content?: unknown }[];
    const result = conversation.find((message) => message.role === "tool");
    const text = result && `It is ${textOf(result.content)}.`;
    if (request.body["stream"] === true) {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.end(`${text === undefined ? callEvents() : textEvents(text)}data: [DONE]\n\n`);
      return;
    }
    const message =
      text === undefined
        ? { role: "assistant", content: null, tool_calls: [weatherCall] }
        : { role: "assistant", content: text };
    json(res, 200, {
      id: "chatcmpl-up",
      object: "chat.completion",
      created: 1_700_000_001,
      model: "upstream-model",
      choices: [{ index: 0, message, finish_reason: text === undefined ? "tool_calls" : "stop" }],
      usage,
    });
  };
}

function callEvents(): string {
  const { id, type, function: called } = weatherCall;
  const half = Math.ceil(called.arguments.length / 2);
  const begin = { index: 0, id, type, function: { name: called.name, arguments: called.arguments.slice(0, half) } };
  const rest = { index: 0, function: { arguments: called.arguments.slice(half) } };
  return (
    chunk({ role: "assistant", content: null, tool_calls: [begin] }) +
    chunk({ tool_calls: [rest] }) +
    chunk({}, "tool_calls")
  );
}

function textEvents(text: string): string {
  return chunk({ role: "assistant", content: text }) + chunk({}, "stop");
}

/** Clients send a tool's result as a string or as text parts. */
function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return (content as { text: string }[]).map((part) => part.text).join("");
}

/** Not exact in float32, so that a mix-up of encodings cannot go unseen. */
export const scriptedVectors = [
  [0.1, -0.25, 3.5e-7, 1],
  [0.7, 0.7, -1e-3, 0],
];

/** A server that knows one encoding and ignores `encoding_format`. */
export function embeddingScript(encoding: "float" | "base64"): Script {
  return (request, res) => {
    const { input } = request.body;
    const count = Array.isArray(input) ? input.length : 1;
    const data = scriptedVectors.slice(0, count).map((vector, index) => ({
      object: "embedding",
      index,
      embedding: encoding === "float" ? vector : encodeEmbedding(vector),
    }));
    json(res, 200, {
      object: "list",
      data,
      model: "upstream-model",
      usage: { prompt_tokens: 4 * count, total_tokens: 4 * count },
    });
  };
}

export const wellBegun = "Well begun";

/** Streams some words, and goes on with `rest` once the test says that its client has them. */
export function interruptedStream(rest: Script): { script: Script; clientHasBegun(): void } {
  let goOn = () => {};
  const begun = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  return {
    async script(request, res) {
      res.writeHead(200, { "content-type": "text/event-stream" });
      res.write(chunk({ role: "assistant", content: wellBegun }));
      await begun;
      await rest(request, res);
    },
    clientHasBegun: () => goOn(),
  };
}
