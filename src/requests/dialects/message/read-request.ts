// Reads a Messages request into a conversation in the neutral format.
import { fieldError } from "../../../base/errors.ts";
import type { Seal } from "../../../domain/seal.ts";
import type { Conversation, OutputForm, Thinking } from "../conversation/conversation.ts";
import { fitsStrict } from "../conversation/strict-schema.ts";
import { cacheOf } from "./blocks.ts";
import { isObject, type Json, numberOf, objectOf, objectsOf, textOf } from "./json.ts";
import { readTurns } from "./read-messages.ts";
import { readToolChoice, readTools } from "./read-tools.ts";

const known: ReadonlySet<string> = new Set([
  ...["model", "messages", "system", "max_tokens", "tools", "tool_choice", "mcp_servers", "thinking", "output_config"],
  ...["output_format", "stop_sequences", "stream", "metadata", "service_tier", "temperature", "top_p", "top_k"],
  "cache_control",
]);
/** Name of an answer's schema. Other formats require a name, but Messages has none. */
const schemaName = "answer";

/**
 * Reads a request. `body` fits `messageRequest` or `messageCountRequest`. Throws `invalid_request` for members that no
 * other format can express.
 */
export function readRequest(body: Json, seal: Seal): Conversation {
  const { turns, loaded, leftOut } = readTurns(body, seal);
  const output = objectOf(body["output_config"]);
  const maxTokens = numberOf(body["max_tokens"]);
  if (maxTokens === 0) {
    throw fieldError(
      "max_tokens",
      "0 fills Anthropic's cache of prompts and nothing else; ask for one token at least.",
    );
  }
  const metadata = objectOf(body["metadata"]);
  const { user_id, ...labels } = metadata;
  const stop = stopOf(body["stop_sequences"]);
  return {
    turns,
    tools: readTools(body, loaded),
    ...readToolChoice(body["tool_choice"]),
    output: outputOf(output["format"] ?? body["output_format"]),
    thinking: thinkingOf(body["thinking"], textOf(output["effort"])),
    maxTokens,
    sampling: {
      temperature: numberOf(body["temperature"]),
      topP: numberOf(body["top_p"]),
      topK: numberOf(body["top_k"]),
      stop,
      stopPlace: stop && "stop_sequences",
    },
    stream: body["stream"] === true,
    cache: cacheOf(body),
    hints: {
      user: textOf(user_id),
      serviceTier: textOf(body["service_tier"]),
      metadata: Object.keys(labels).length > 0 ? labels : undefined,
    },
    others: { ...othersOf(body, output), ...examplesIn(body["tools"]), ...leftOut },
  };
}

/** Returns those members of the body and of `output_config` that only Anthropic knows. */
function othersOf(body: Json, { effort, format: _format, ...output }: Json): Record<string, unknown> {
  const others: Record<string, unknown> = {};
  // In other formats, the effort is an option of thinking. They cannot express an effort without thinking.
  if (objectOf(body["thinking"])["type"] === "disabled" && effort != null) others["output_config.effort"] = effort;
  for (const [name, value] of Object.entries(body)) {
    if (!known.has(name) && value !== null) others[name] = value;
  }
  for (const [name, value] of Object.entries(output)) if (value !== null) others[`output_config.${name}`] = value;
  return others;
}

/** Returns the examples of tool inputs. Anthropic's models read these examples in addition to the schema. */
function examplesIn(tools: unknown): Record<string, unknown> {
  const examples = objectsOf(tools).map(
    ({ input_examples }, i) => [`tools[${i}].input_examples`, input_examples] as const,
  );
  return Object.fromEntries(examples.filter(([, value]) => Array.isArray(value) && value.length > 0));
}

function outputOf(format: unknown): OutputForm | undefined {
  if (!isObject(format)) return undefined;
  const { type, schema } = format;
  // Strict mode is used only if OpenAI accepts the schema. Unlike Anthropic, OpenAI refuses optional properties in
  // strict mode.
  if (type === "json_schema" && isObject(schema)) {
    return { type: "schema", name: schemaName, schema, strict: fitsStrict(schema) };
  }
  throw fieldError("output_config.format.type", "it is `json_schema`, with the schema in `schema`.");
}

/**
 * The value `between_tools` is Anthropic's lowest level of thinking. The client's effort applies to this level as well.
 */
function thinkingOf(value: unknown, effort: string | undefined): Thinking | undefined {
  if (!isObject(value)) return effort === undefined ? undefined : { effort };
  const { type, budget_tokens, display } = value;
  const shown = display === "omitted" ? "omitted" : display === "summarized" ? "auto" : undefined;
  switch (type) {
    case "enabled":
      return { enabled: true, effort, budget: numberOf(budget_tokens), shown };
    case "adaptive":
      return { enabled: true, effort, shown };
    case "between_tools":
      return { enabled: true, effort: effort ?? "low" };
    case "disabled":
      return { enabled: false };
    default:
      throw fieldError("thinking.type", "it is one of `enabled`, `adaptive`, `between_tools` and `disabled`.");
  }
}

function stopOf(sequences: unknown): readonly string[] | undefined {
  return Array.isArray(sequences) && sequences.length > 0
    ? sequences.filter((one) => typeof one === "string")
    : undefined;
}
