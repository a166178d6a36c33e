// Whether a request of Messages is one that servers which convert it to chat completions inside understand.
import { isObject, type Json, objectOf } from "./json.ts";

/**
 * Such servers pass over what they do not know without a word: in ggml-org/llama.cpp documents, results of a search, forms of
 * the answer, the name of a tool that is to be called, and that there shall be no thinking (`tools/server/server-chat.cpp`).
 * How much a model is to think, and that a tool failed, are no reason: no more is lost of these than a hint.
 */
export function isPlain({ tools, tool_choice, mcp_servers, thinking, messages, ...body }: Json): boolean {
  const form = objectOf(body["output_config"])["format"] ?? body["output_format"];
  const hasMore = [mcp_servers, form].some((value) => value !== undefined && value !== null);
  return (
    !hasMore &&
    objectOf(thinking)["type"] !== "disabled" &&
    isPlainChoice(objectOf(tool_choice)) &&
    all(tools, isPlainTool) &&
    all(messages, isPlainMessage)
  );
}

/** Not those that Anthropic runs or describes, nor those that a conversation loads later. */
function isPlainTool({ type, defer_loading }: Json): boolean {
  return (type ?? "custom") === "custom" && defer_loading !== true;
}

function isPlainChoice({ type, disable_parallel_tool_use }: Json): boolean {
  return (type === undefined || type === "auto" || type === "any") && disable_parallel_tool_use !== true;
}

const plainBlocks: ReadonlySet<unknown> = new Set([
  ...["text", "image", "thinking", "redacted_thinking", "tool_use", "tool_result"],
]);

function isPlainMessage({ role, content }: Json): boolean {
  return (role === "user" || role === "assistant") && all(content, isPlainBlock);
}

function isPlainBlock({ type, source, content }: Json): boolean {
  if (type === "image" && objectOf(source)["type"] === "file") return false;
  return plainBlocks.has(type) && (type !== "tool_result" || all(content, isPlainResult));
}

function isPlainResult({ type }: Json): boolean {
  return type === "text" || type === "image";
}

/** What is no list has nothing in it. */
function all(value: unknown, is: (one: Json) => boolean): boolean {
  return !Array.isArray(value) || value.every((one) => isObject(one) && is(one));
}
