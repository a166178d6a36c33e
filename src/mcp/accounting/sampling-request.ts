// Converts sampling requests (`sampling/createMessage`) to chat requests, and chat completions to sampling results.

import { fieldError, GatewayError } from "../../base/errors.ts";
import { shown } from "../../base/text/shown.ts";
import { toolSchema } from "../../domain/tools/tool-schema.ts";

export type Json = Readonly<Record<string, unknown>>;

/** Maximum messages, tools and model hints of a sampling request. The transport limits its bytes. */
const [maxMessages, maxTools, maxHints] = [2_048, 128, 16];
/** Audio formats whose names differ from their media types. */
const audioFormats: Readonly<Record<string, string>> = {
  "audio/mpeg": "mp3",
  "audio/x-wav": "wav",
  "audio/wave": "wav",
};
const stopReasons: Readonly<Record<string, string>> = { stop: "endTurn", length: "maxTokens", tool_calls: "toolUse" };
const toolChoices: ReadonlySet<unknown> = new Set(["auto", "required", "none"]);

/** Returns the server's model hints, best first. A hint may be only a part of a model's name. */
export function hintsOf({ modelPreferences }: Json): string[] {
  const hints = isJson(modelPreferences) ? modelPreferences["hints"] : undefined;
  if (!Array.isArray(hints)) return [];
  return hints
    .slice(0, maxHints)
    .flatMap((hint) => (isJson(hint) && typeof hint["name"] === "string" && hint["name"] ? [hint["name"]] : []));
}

/** Builds the body of the chat request. Throws `invalid_request`. Preferences for context and cost are ignored. */
export function chatBodyOf(params: Json, model: string): Json {
  const { messages, systemPrompt, temperature, maxTokens, stopSequences, tools, toolChoice } = params;
  if (!Array.isArray(messages) || messages.length === 0 || messages.length > maxMessages) {
    throw fieldError("messages", `must be an array of 1 to ${maxMessages} messages.`);
  }
  if (typeof maxTokens !== "number" || !Number.isSafeInteger(maxTokens) || maxTokens < 1) {
    throw fieldError("maxTokens", `must be a whole number of at least 1 (got ${shown(String(maxTokens))}).`);
  }
  const system = typeof systemPrompt === "string" && systemPrompt !== "";
  return {
    model,
    messages: [
      ...(system ? [{ role: "system", content: systemPrompt }] : []),
      ...messages.flatMap((message, i) => chatMessages(message, `messages[${i}]`)),
    ],
    max_completion_tokens: maxTokens,
    ...(typeof temperature === "number" && { temperature }),
    ...(Array.isArray(stopSequences) && stopSequences.length > 0 && { stop: stopSequences }),
    ...(Array.isArray(tools) && tools.length > 0 && { tools: chatTools(tools), ...chosen(toolChoice) }),
    // The chat is not stored among the principal's own chats.
    store: false,
  };
}

function chatTools(tools: readonly unknown[]): Json[] {
  if (tools.length > maxTools) throw fieldError("tools", `must be at most ${maxTools} (got ${tools.length}).`);
  return tools.map((tool, i) => {
    const { name, description, inputSchema } = isJson(tool) ? tool : {};
    if (typeof name !== "string" || name === "")
      throw fieldError(`tools[${i}].name`, "must be a text that is not empty.");
    return { type: "function", function: { name, description, parameters: toolSchema(inputSchema) } };
  });
}

function chosen(toolChoice: unknown): Json {
  const mode = isJson(toolChoice) ? toolChoice["mode"] : undefined;
  if (mode === undefined) return {};
  if (toolChoices.has(mode)) return { tool_choice: mode };
  throw fieldError("toolChoice.mode", "must be `auto`, `required` or `none`.");
}

/** Converts a message to chat messages. Tool results become separate messages, before the rest of the content. */
function chatMessages(message: unknown, at: string): Json[] {
  const { role, content } = isJson(message) ? message : {};
  if (role !== "user" && role !== "assistant") throw fieldError(`${at}.role`, "must be `user` or `assistant`.");
  const blocks = (Array.isArray(content) ? content : [content]).map((block: unknown, i) => {
    if (isJson(block)) return block;
    throw fieldError(`${at}.content[${i}]`, "must be an object with a `type`.");
  });
  const results = blocks.filter(({ type }) => type === "tool_result").map((block) => resultMessage(block, at));
  const calls = blocks.filter(({ type }) => type === "tool_use").map((block) => chatCall(block, at));
  const others = blocks.filter(({ type }) => type !== "tool_result" && type !== "tool_use");
  const parts = others.map((block) => chatPart(block, at));
  if (role === "assistant") {
    const said = parts.length > 0 ? { content: textsOf(others, at) } : { content: null };
    return [...results, { role, ...said, ...(calls.length > 0 && { tool_calls: calls }) }];
  }
  if (calls.length > 0) throw fieldError(`${at}.content`, "has a `tool_use`, which is for messages of the assistant.");
  return parts.length > 0 ? [...results, { role, content: parts }] : results;
}

function chatPart(block: Json, at: string): Json {
  const { type, text, data, mimeType } = block;
  if (type === "text" && typeof text === "string") return { type, text };
  if (typeof data === "string" && typeof mimeType === "string") {
    if (type === "image") return { type: "image_url", image_url: { url: `data:${mimeType};base64,${data}` } };
    const format = audioFormats[mimeType] ?? mimeType.slice(mimeType.indexOf("/") + 1);
    if (type === "audio") return { type: "input_audio", input_audio: { data, format } };
  }
  throw fieldError(
    `${at}.content`,
    `must be \`text\`, \`image\`, \`audio\`, \`tool_use\` or \`tool_result\`, with its members (got ${shown(String(type))}).`,
  );
}

/** Joins the texts of an assistant message or tool result. */
function textsOf(blocks: readonly unknown[], at: string): string {
  const texts = blocks.map((block) => {
    if (isJson(block) && block["type"] === "text" && typeof block["text"] === "string") return block["text"];
    throw fieldError(`${at}.content`, "must be text here: models take nothing else from the assistant and from tools.");
  });
  return texts.join("\n");
}

function chatCall({ id, name, input }: Json, at: string): Json {
  if (typeof id === "string" && typeof name === "string") {
    return { id, type: "function", function: { name, arguments: JSON.stringify(input ?? {}) } };
  }
  throw fieldError(`${at}.content`, "has a `tool_use` without `id` or `name`.");
}

function resultMessage({ toolUseId, content, structuredContent }: Json, at: string): Json {
  if (typeof toolUseId !== "string") throw fieldError(`${at}.content`, "has a `tool_result` without `toolUseId`.");
  const blocks = Array.isArray(content) ? content : [];
  const text = blocks.length === 0 ? JSON.stringify(structuredContent ?? {}) : textsOf(blocks, at);
  return { role: "tool", tool_call_id: toolUseId, content: text };
}

/** Converts the JSON of a chat completion to a sampling result. Throws `upstream_error`. */
export function samplingResultOf(completion: string, model: string): Json {
  const { choices } = JSON.parse(completion) as { choices?: readonly { message?: Json; finish_reason?: string }[] };
  const { message = {}, finish_reason: reason = "stop" } = choices?.[0] ?? {};
  const { content, tool_calls: calls } = message;
  const uses = Array.isArray(calls) ? calls.map(toolUse) : [];
  const text = { type: "text", text: typeof content === "string" ? content : "" };
  const blocks = text.text === "" && uses.length > 0 ? uses : [text, ...uses];
  // A server that offered no tools expects a single content block, not a list.
  return {
    role: "assistant",
    content: uses.length === 0 ? text : blocks,
    model,
    stopReason: uses.length > 0 ? "toolUse" : (stopReasons[reason] ?? reason),
  };
}

function toolUse(call: unknown): Json {
  const { id, function: called } = isJson(call) ? call : {};
  const { name, arguments: said } = isJson(called) ? called : {};
  return { type: "tool_use", id, name, input: inputOf(said) };
}

function inputOf(said: unknown): Json {
  try {
    const input: unknown = JSON.parse(typeof said === "string" && said !== "" ? said : "{}");
    if (isJson(input)) return input;
  } catch {
    // Not JSON: the error below is thrown.
  }
  throw new GatewayError("upstream_error", "The model called a tool with arguments that are no JSON object.");
}

function isJson(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
