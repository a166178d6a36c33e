// Reads a Responses request into a conversation.
import { fieldError } from "../../../base/errors.ts";
import type { Seal } from "../../../domain/seal.ts";
import { cacheOf } from "../conversation/cache-marks.ts";
import type {
  Conversation,
  ConversationMessage,
  OutputForm,
  Sampling,
  Thinking,
} from "../conversation/conversation.ts";
import { isToCompact } from "./compaction.ts";
import { isObject, type Json, numberOf, textOf } from "./json.ts";
import { readItems } from "./read-items.ts";
import { readChoice, readTools } from "./read-tools.ts";

/** Names of the members that this file reads or that the gateway handles elsewhere. */
const known: ReadonlySet<string> = new Set([
  ...["model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "text", "reasoning", "stream"],
  ...["max_output_tokens", "temperature", "top_p", "top_logprobs", "include", "metadata", "user", "safety_identifier"],
  ...[
    "service_tier",
    "prompt_cache_key",
    "store",
    "background",
    "previous_response_id",
    "conversation",
    "stream_options",
    "cache_control",
  ],
]);

export function readRequest(body: Json, seal: Seal): Conversation {
  const items = readItems(body["input"], seal);
  const offered = [{ tools: body["tools"], place: "tools" }, ...items.tools].map(({ tools, place }) =>
    readTools(tools, place),
  );
  const { choice, tools } = readChoice(
    body["tool_choice"],
    offered.flatMap((read) => read.tools),
  );
  const leftOut = [...offered.flatMap((read) => read.leftOut), ...items.leftOut];
  return {
    turns: [...instructions(body["instructions"]), ...items.turns],
    tools,
    // The result of a compaction is a summary, so the model must not call tools.
    toolChoice: tools.length > 0 && isToCompact(body) ? { type: "none" } : choice,
    parallelCalls: typeof body["parallel_tool_calls"] === "boolean" ? body["parallel_tool_calls"] : undefined,
    output: outputOf(body["text"]),
    thinking: thinkingOf(body["reasoning"]),
    maxTokens: numberOf(body["max_output_tokens"]),
    sampling: samplingOf(body),
    stream: body["stream"] === true,
    cache: cacheOf(body),
    hints: {
      user: textOf(body["safety_identifier"]) ?? textOf(body["user"]),
      serviceTier: textOf(body["service_tier"]),
      promptCacheKey: textOf(body["prompt_cache_key"]),
      metadata: isObject(body["metadata"]) ? body["metadata"] : undefined,
    },
    others: othersOf(body, leftOut),
  };
}

function instructions(text: unknown): ConversationMessage[] {
  if (typeof text !== "string" || text === "") return [];
  return [{ role: "system", parts: [{ type: "text", text }], place: "instructions" }];
}

export function outputOf(text: unknown): OutputForm | undefined {
  const format = isObject(text) && isObject(text["format"]) ? text["format"] : undefined;
  switch (format?.["type"]) {
    case undefined:
      return undefined;
    case "text":
      return { type: "text" };
    case "json_object":
      return { type: "json" };
    case "json_schema": {
      const { schema, strict } = format;
      if (!isObject(schema)) throw fieldError("text.format.schema", "is required: a JSON Schema.");
      const name = textOf(format["name"]) ?? "answer";
      const description = textOf(format["description"]);
      return { type: "schema", name, description, schema, strict: typeof strict === "boolean" ? strict : undefined };
    }
    default:
      throw fieldError("text.format.type", "must be text, json_object or json_schema for this model.");
  }
}

function thinkingOf(reasoning: unknown): Thinking | undefined {
  if (!isObject(reasoning)) return undefined;
  const effort = textOf(reasoning["effort"]);
  const shown = textOf(reasoning["summary"]) ?? textOf(reasoning["generate_summary"]);
  if (effort === undefined && shown === undefined) return undefined;
  return { effort, shown };
}

function samplingOf(body: Json): Sampling {
  const include = Array.isArray(body["include"]) ? body["include"] : [];
  const top = numberOf(body["top_logprobs"]);
  const wantsLogprobs = include.includes("message.output_text.logprobs");
  const text = isObject(body["text"]) ? body["text"] : {};
  return {
    temperature: numberOf(body["temperature"]),
    topP: numberOf(body["top_p"]),
    logprobs: wantsLogprobs || (top ?? 0) > 0 ? (top ?? 0) : undefined,
    verbosity: textOf(text["verbosity"]),
  };
}

function othersOf(body: Json, leftOut: readonly string[]): Record<string, unknown> {
  if (isObject(body["prompt"])) {
    throw fieldError(
      "prompt",
      "names a prompt that OpenAI keeps, and this model is another one. Send its text as `instructions`.",
    );
  }
  const others = Object.entries(body).filter(([name, value]) => {
    const isDefault = value === null || (name === "truncation" && value === "disabled");
    return !known.has(name) && !isDefault;
  });
  // The object is built from entries. If a member has the same name as a prototype member, it still becomes an own
  // member.
  return Object.fromEntries([...others, ...leftOut.map((place) => [place, true] as const)]);
}
