// Reads messages for traces from requests and answers that are lists of items or blocks.
import { maxSaid, type Said, type SaidCall, type SaidPart } from "../said.ts";

type Json = Readonly<Record<string, unknown>>;

/** Types of items and blocks that are tool calls, and then the types that are results of tool calls. */
const calls: ReadonlySet<unknown> = new Set(["function_call", "custom_tool_call", "tool_use"]);
const results: ReadonlySet<unknown> = new Set(["function_call_output", "custom_tool_call_output", "tool_result"]);

/**
 * Returns the items or messages of a prompt, beginning with the last one. A prompt that is only a text counts as one
 * message.
 */
export function* itemsSaid(prompt: unknown): Iterable<Said> {
  const items: readonly unknown[] = typeof prompt === "string" ? [{ role: "user", content: prompt }] : listOf(prompt);
  for (const item of items.slice(-maxSaid).toReversed()) {
    if (isObject(item)) yield saidIn(item);
  }
}

/** Reads one item or message. */
export function saidIn(item: Json): Said {
  const { type, role = "assistant" } = item;
  if (results.has(type)) return resultIn(item);
  if (calls.has(type)) return { role, parts: [], calls: [callOf(item)] };
  const content: readonly unknown[] =
    typeof item["content"] === "string" ? [{ text: item["content"] }] : listOf(item["content"] ?? item["summary"]);
  const blocks = content.filter(isObject).slice(0, maxSaid);
  const result = blocks.find((block) => results.has(block["type"]));
  if (result) return resultIn(result);
  return {
    role,
    parts: blocks.filter((block) => !calls.has(block["type"])).map(partOf),
    calls: blocks.filter((block) => calls.has(block["type"])).map(callOf),
  };
}

function resultIn(item: Json): Said {
  const resultOf = String(item["call_id"] ?? item["tool_use_id"] ?? "");
  const output = item["output"] ?? item["content"];
  const parts = typeof output === "string" ? [{ text: output }] : listOf(output).filter(isObject).map(partOf);
  return { role: "tool", parts, calls: [], resultOf };
}

function partOf(part: Json): SaidPart {
  const text = part["text"] ?? part["refusal"] ?? part["thinking"];
  return typeof text === "string" ? { text } : { type: part["type"] };
}

function callOf(call: Json): SaidCall {
  const { arguments: values, input } = call;
  const text = values ?? (typeof input === "string" ? input : JSON.stringify(input ?? {}));
  return { id: call["call_id"] ?? call["id"], name: call["name"], text };
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
