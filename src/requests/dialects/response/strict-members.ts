// Adds members that a server of the Responses API leaves out of a response, its items and their content.
import type { AnswerMember, ScannedAnswer } from "../answer-scan.ts";
import type { ReplyUsage } from "../conversation/reply.ts";
import type { RepairHead } from "../translation/repair-head.ts";
import { isObject, type Json, numberOf, objectsOf, textOf } from "./json.ts";
import { idPrefixes } from "./output-items.ts";
import { formatToWire, responseBase, toolToWire, usageToWire } from "./response-object.ts";

/** Names of members that the Open Responses specification requires but that some servers do not send. */
const neverNull = [
  ...(["object", "created_at", "status", "tools", "tool_choice", "truncation", "parallel_tool_calls", "text"] as const),
  ...(["temperature", "top_p", "presence_penalty", "frequency_penalty", "top_logprobs"] as const),
  ...(["store", "background", "service_tier"] as const),
];
const nullable = [
  ...(["completed_at", "incomplete_details", "previous_response_id", "instructions", "error", "reasoning"] as const),
  ...(["max_output_tokens", "max_tool_calls", "metadata", "safety_identifier", "prompt_cache_key"] as const),
];
const required: readonly AnswerMember[] = [...neverNull, ...nullable];
const none: readonly AnswerMember[] = [];

/** Returns the required members that a scanned response does not have. */
export function leftOut(found: ScannedAnswer): readonly AnswerMember[] {
  let names: AnswerMember[] | undefined;
  for (let at = 0; at < required.length; at++) {
    const name = required[at] as AnswerMember;
    if (!(at < neverNull.length ? found.isNothing(name) : found.firstByteOf(name) === 0)) continue;
    names ??= [];
    names.push(name);
  }
  return names ?? none;
}

/** Returns all required members. Their values come from the request, or are neutral. */
export function requiredMembers(head: RepairHead, status: unknown): Json {
  const completedAt = status === "completed" ? head.nowSeconds() : null;
  return { ...responseBase(head), status, completed_at: completedAt, incomplete_details: null, error: null };
}

/**
 * Returns the response with all required members except `output` and `usage`. If none is missing, returns the same
 * object. `status` is the status that the response really has.
 */
export function withRequired(response: Json, status: unknown, head: RepairHead): Json {
  let own: Record<string, unknown> | undefined;
  let base: Json | undefined;
  for (let at = 0; at < required.length; at++) {
    const name = required[at] as AnswerMember;
    const given = response[name];
    if (given !== undefined && (given !== null || at >= neverNull.length)) continue;
    base ??= requiredMembers(head, status);
    own ??= { ...response };
    own[name] = base[name];
  }
  const { tools, text, reasoning } = response;
  const strict = { tools: strictTools(tools), text: strictText(text), reasoning: strictReasoning(reasoning), status };
  for (const name of ["tools", "text", "reasoning", "status"] as const) {
    if (strict[name] === response[name]) continue;
    own ??= { ...response };
    own[name] = strict[name];
  }
  return own ?? response;
}

/** Returns the tools with the three members that every function tool has. Each of these members may be null. */
function strictTools(tools: unknown): unknown {
  if (!Array.isArray(tools) || tools.every(isWholeTool)) return tools;
  return tools.map((tool: unknown) => (isWholeTool(tool) ? tool : toolToWire(tool as Json)));
}

function isWholeTool(tool: unknown): boolean {
  if (!isObject(tool) || tool["type"] !== "function") return true;
  return tool["description"] !== undefined && tool["parameters"] !== undefined && tool["strict"] !== undefined;
}

function strictText(text: unknown): unknown {
  if (!isObject(text)) return text;
  const { format, verbosity } = text;
  const isSchema = isObject(format) && format["type"] === "json_schema";
  const isWhole =
    isObject(format) && (!isSchema || (textOf(format["description"]) ?? format["description"]) !== undefined);
  if (isWhole && verbosity !== null && !(isSchema && typeof format["strict"] !== "boolean")) return text;
  return { ...text, verbosity: verbosity ?? undefined, format: formatToWire(format) };
}

function strictReasoning(reasoning: unknown): unknown {
  if (!isObject(reasoning)) return reasoning;
  const isWhole = reasoning["effort"] !== undefined && reasoning["summary"] !== undefined;
  return isWhole ? reasoning : { effort: null, summary: null, ...reasoning };
}

/** Reports whether the usage of an ended response has all its figures. */
export function isWholeUsage(usage: unknown): boolean {
  if (!isObject(usage)) return false;
  const { input_tokens_details: input, output_tokens_details: output } = usage;
  return (
    [usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]].every(
      (count) => typeof count === "number",
    ) &&
    isObject(input) &&
    typeof input["cached_tokens"] === "number" &&
    isObject(output) &&
    typeof output["reasoning_tokens"] === "number"
  );
}

/**
 * Returns the usage of an ended response with all its figures. If the server does not report a figure, it comes from
 * `counted`.
 */
export function strictUsage(usage: unknown, counted: ReplyUsage): Json {
  const own = usageToWire(counted);
  if (!isObject(usage)) return own;
  const tokens = numberOf(usage["input_tokens"]) ?? numberOf(own["input_tokens"]) ?? 0;
  const completion = numberOf(usage["output_tokens"]) ?? numberOf(own["output_tokens"]) ?? 0;
  const [input, output] = [usage["input_tokens_details"], usage["output_tokens_details"]];
  return {
    ...usage,
    input_tokens: tokens,
    input_tokens_details: { ...(isObject(input) ? input : {}), ...missingCount(input, "cached_tokens") },
    output_tokens: completion,
    output_tokens_details: { ...(isObject(output) ? output : {}), ...missingCount(output, "reasoning_tokens") },
    total_tokens: numberOf(usage["total_tokens"]) ?? tokens + completion,
  };
}

function missingCount(details: unknown, name: string): Json {
  return isObject(details) && typeof details[name] === "number" ? {} : { [name]: 0 };
}

/** Types of items that get an id, with the prefix of the id for each type. */
const prefixes: Readonly<Record<string, string>> = {
  message: idPrefixes.message,
  reasoning: idPrefixes.reasoning,
  function_call: idPrefixes.function,
  custom_tool_call: idPrefixes.custom,
};

/**
 * Returns an id for an item to which the server gave none. The same index in the same answer always gets the same id.
 */
export function itemIdAt(answerId: string, type: unknown, index: number): string | undefined {
  const prefix = prefixes[String(type)];
  return prefix && `${prefix}_${answerId.replace(/^resp_/, "")}_${index}`;
}

export interface StrictPosition {
  /** The id of the answer, and the position of the item in the answer's output. */
  readonly answerId: string;
  readonly index: number;
  /** The id that the client has already got for the item. */
  readonly id?: string | undefined;
  readonly status: "in_progress" | "completed" | "incomplete";
  /** True if the item is complete. If a complete call has no arguments, it takes none. */
  readonly isWhole: boolean;
}

/** Returns the item with all members that clients need. If none is missing, returns the same object. */
export function strictItem(item: Json, position: StrictPosition): Json {
  const { type } = item;
  const id = position.id ?? (textOf(item["id"]) || itemIdAt(position.answerId, type, position.index));
  const own = id === undefined || id === item["id"] ? item : { ...item, id };
  if (type === "message") return strictMessageItem(own, position);
  if (type === "function_call") return strictCall(own, position, textOf(item["id"]));
  if (type === "reasoning") return strictReasoningItem(own);
  return own;
}

function strictMessageItem(item: Json, { status: expected }: StrictPosition): Json {
  const status = textOf(item["status"]) ?? expected;
  const role = textOf(item["role"]) ?? "assistant";
  const content = strictContent(item["content"]);
  const isStrict = status === item["status"] && role === item["role"] && content === item["content"];
  return isStrict ? item : { ...item, status, role, content };
}

/** Returns the content as a list of parts. In the server's item, the content may be a plain text. */
function strictContent(content: unknown): unknown {
  const text = textOf(content);
  if (text) return [{ type: "output_text", text, annotations: [] }];
  if (!Array.isArray(content)) return [];
  const parts = content.map(strictPart);
  return parts.every((part, index) => part === content[index]) ? content : parts;
}

/**
 * Returns a part of a message's content with all members that clients need. If none is missing, returns the same
 * object.
 */
export function strictPart(part: unknown): unknown {
  if (!isObject(part)) return part;
  const { type, text, annotations, refusal } = part;
  if (type === "refusal" && textOf(refusal) === undefined) return { ...part, refusal: "" };
  if (type !== "output_text" || (Array.isArray(annotations) && textOf(text) !== undefined)) return part;
  return { ...part, text: textOf(text) ?? "", annotations: Array.isArray(annotations) ? annotations : [] };
}

/**
 * Adds missing members to a call. If a complete call has no arguments, it gets an empty object. `reportedId` is the
 * item's id from the server.
 */
function strictCall(
  item: Json,
  { answerId, index, isWhole, status: expected }: StrictPosition,
  reportedId?: string,
): Json {
  const { arguments: given, call_id: callId } = item;
  const status = textOf(item["status"]) ?? expected;
  const none = isWhole && status !== "incomplete" ? textOf(given) || "{}" : (textOf(given) ?? "");
  const values = isObject(given) ? JSON.stringify(given) : none;
  const own = textOf(callId) || reportedId || `call_${answerId.replace(/^resp_/, "")}_${index}`;
  if (values === given && own === callId && status === item["status"]) return item;
  return { ...item, call_id: own, arguments: values, status };
}

/** Names of members that are left out of reasoning if they would be null. */
const neverNullOfReasoning = ["content", "encrypted_content", "status"] as const;

function strictReasoningItem(item: Json): Json {
  const hasNull = neverNullOfReasoning.some((name) => item[name] === null);
  if (Array.isArray(item["summary"]) && !hasNull) return item;
  const own: Record<string, unknown> = { ...item };
  if (!Array.isArray(own["summary"])) own["summary"] = [];
  for (const name of neverNullOfReasoning) if (own[name] === null) delete own[name];
  return own;
}

/**
 * Returns the output of an ended response with all members that clients need. If none is missing, returns the same
 * list. `positionOf` returns the index that an item has for the client, and the item's id if the client has already got
 * one.
 */
export function strictOutput(
  output: unknown,
  status: unknown,
  positionOf: (item: Json, position: number) => Pick<StrictPosition, "answerId" | "index" | "id" | "isWhole">,
): readonly Json[] {
  const items = objectsOf(output);
  const last = items.length - 1;
  let isStrict = Array.isArray(output) && items.length === output.length;
  const strict = items.map((item, position) => {
    const own = strictItem(item, {
      ...positionOf(item, position),
      // If the answer was cut off, it ends within its last item.
      status: status === "incomplete" && position === last ? "incomplete" : "completed",
    });
    isStrict &&= own === item;
    return own;
  });
  return isStrict ? (output as readonly Json[]) : strict;
}
