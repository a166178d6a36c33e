// Builds the response object. It contains members repeated from the request, and the state of the answer.
import type { AnswerMark } from "../answer.ts";
import type { ReplyHead, ReplyUsage } from "../conversation/reply.ts";
import { isObject, type Json } from "./json.ts";

/** Members of the request that a response repeats, and their default values. */
const repeated: Readonly<Record<string, unknown>> = {
  background: false,
  frequency_penalty: 0,
  instructions: null,
  max_output_tokens: null,
  max_tool_calls: null,
  metadata: {},
  parallel_tool_calls: true,
  presence_penalty: 0,
  prompt_cache_key: null,
  safety_identifier: null,
  service_tier: "default",
  temperature: 1,
  tool_choice: "auto",
  top_logprobs: 0,
  top_p: 1,
  truncation: "disabled",
  user: null,
};

/** The members about storage, with their values for a response that is not stored. */
const notKept = { store: false, previous_response_id: null, conversation: null };

/**
 * The service tiers that replace the requested tier in a response. Servers also report other names there, such as a
 * region, which are not tiers.
 */
const pricedTiers: ReadonlySet<string> = new Set(["flex", "scale", "priority"]);

export interface ResponseState {
  status: "in_progress" | "completed" | "incomplete" | "failed";
  output: readonly Json[];
  usage?: ReplyUsage | undefined;
  /** Time in Unix seconds at which the answer was completed. */
  completedAt?: number | undefined;
  incomplete?: string | undefined;
  mark?: AnswerMark | undefined;
  error?: { code: string; message: string } | undefined;
}

/** Returns the members that do not change during an answer. */
export function responseBase({
  id,
  model,
  created,
  request,
  members,
}: Pick<ReplyHead, "id" | "model" | "created" | "request" | "members">): Json {
  const base: Record<string, unknown> = { id, object: "response", created_at: created, model };
  for (const [name, value] of Object.entries(repeated)) base[name] = request[name] ?? value;
  const { reasoning, text, tools } = request as {
    reasoning?: Json | null;
    text?: Json | null;
    tools?: readonly Json[] | null;
  };
  base["tools"] = (tools ?? []).map(toolToWire);
  base["reasoning"] = { effort: null, summary: null, ...reasoning };
  base["text"] = { verbosity: "medium", ...text, format: formatToWire(text?.["format"]) };
  return Object.assign(base, notKept, members);
}

/**
 * Adds to a tool the members that the Open Responses specification requires, even if they are empty, and removes
 * credentials.
 */
export function toolToWire(tool: Json): Json {
  if (tool["type"] === "mcp") {
    const { authorization: _, ...shown } = tool;
    return { allowed_tools: null, require_approval: "always", ...shown, headers: null };
  }
  return tool["type"] === "function" ? { description: null, parameters: null, strict: null, ...tool } : tool;
}

export function formatToWire(format: unknown): unknown {
  if (!isObject(format)) return { type: "text" };
  return format["type"] === "json_schema"
    ? { ...format, description: format["description"] ?? null, strict: format["strict"] ?? false }
    : format;
}

export function responseState(state: ResponseState): Json {
  const { status, output, usage, completedAt, incomplete, mark, error } = state;
  const tier = usage?.details?.served?.find((name) => pricedTiers.has(name));
  return {
    ...(tier !== undefined && { service_tier: tier }),
    status,
    completed_at: completedAt ?? null,
    error: error ?? null,
    incomplete_details: incomplete === undefined ? null : { reason: incomplete },
    output,
    usage: usage ? usageToWire(usage) : null,
    ...(mark && { headrace: mark }),
  };
}

export function usageToWire(usage: ReplyUsage): Json {
  const { promptTokens = 0, completionTokens = 0, cachedTokens = 0, cacheWriteTokens = 0, reasoningTokens = 0 } = usage;
  return {
    input_tokens: promptTokens,
    input_tokens_details: { cached_tokens: cachedTokens, cache_write_tokens: cacheWriteTokens },
    output_tokens: completionTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: promptTokens + completionTokens,
  };
}
