// Reports whether a request is understood by servers that convert Messages to chat completions internally.
import { isObject, type Json, objectOf } from "./json.ts";

/**
 * Servers that convert Messages to chat completions drop members that they do not know, without notice. In
 * ggml-org/llama.cpp these members are documents, search results, output formats, the name of a forced tool, and
 * disabled thinking (`tools/server/server-chat.cpp`). The thinking effort and a failed tool result are not checked
 * here, because without them only a hint is lost.
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

/** Returns false for a tool that Anthropic runs or describes, and for a tool that the conversation loads later. */
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

/** Reports whether every item of the list passes the check. Returns true for a value that is no list. */
function all(value: unknown, is: (one: Json) => boolean): boolean {
  return !Array.isArray(value) || value.every((one) => isObject(one) && is(one));
}
