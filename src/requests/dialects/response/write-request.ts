// Writes a conversation as a Responses request, for a model server that uses the Responses API.

import { fieldError } from "../../../base/errors.ts";
import { toolSchema } from "../../../domain/tools/tool-schema.ts";
import type {
  AnswerPart,
  Conversation,
  ConversationMessage,
  MediaSource,
  OutputForm,
  Part,
  ResultTurn,
  Sampling,
  Thinking,
  Tool,
  ToolChoice,
  WrittenRequest,
} from "../conversation/conversation.ts";
import { fileName } from "../conversation/file-names.ts";
import { pairedCalls } from "../conversation/paired-calls.ts";
import { isOpenaiThinker, refusesReasoning, takenEffort } from "../openai/thinking-models.ts";
import type { Json } from "./json.ts";

const noNames: WrittenRequest["names"] = new Map();

/**
 * Writes a request whose answer the server must not store. For this reason, the request asks for reasoning in the
 * vendor's encrypted form.
 */
export function writeRequest(conversation: Conversation, model: string): WrittenRequest {
  const { turns, tools, toolChoice, parallelCalls, output, thinking, maxTokens, sampling, stream, hints } =
    conversation;
  requireSayable(conversation);
  const body: Record<string, unknown> = {
    model,
    input: pairedCalls(turns).flatMap(itemsOf),
    store: false,
    include: [
      ...(refusesReasoning(model) ? [] : ["reasoning.encrypted_content"]),
      ...(sampling.logprobs === undefined ? [] : ["message.output_text.logprobs"]),
    ],
    stream,
    tools: tools.length === 0 ? undefined : toolsToWire(tools),
    tool_choice: toolChoice && choiceToWire(toolChoice, tools),
    parallel_tool_calls: parallelCalls,
    max_output_tokens: maxTokens,
    ...samplingToWire(sampling),
    text: textToWire(output, sampling.verbosity),
    reasoning: thinking && !refusesReasoning(model) ? reasoningToWire(thinking, model) : undefined,
    safety_identifier: isShort(hints.user) ? hints.user : undefined,
    prompt_cache_key: isShort(hints.promptCacheKey) ? hints.promptCacheKey : undefined,
    service_tier: tiers.get(hints.serviceTier),
    metadata: hints.metadata,
  };
  return { body: JSON.stringify(body), leftOut: leftOutOf(conversation, model), names: noNames };
}

/** OpenAI's names for the service tiers of OpenAI and Anthropic. */
const tiers: ReadonlyMap<string | undefined, string> = new Map([
  ...["auto", "default", "flex", "scale", "priority"].map((tier) => [tier, tier] as const),
  ["standard_only", "default"],
]);

/** Reports whether OpenAI accepts the id or key. OpenAI refuses long ones, such as those that Claude Code sends. */
function isShort(hint: string | undefined): boolean {
  return hint === undefined || hint.length <= 64;
}

function leftOutOf({ turns, cache, hints, others, thinking }: Conversation, model: string): string[] {
  const { user, promptCacheKey, serviceTier } = hints;
  const names: readonly (readonly [string, boolean])[] = [
    ["name", turns.some((turn) => (turn.role === "user" || turn.role === "assistant") && turn.name !== undefined)],
    ["reasoning", isThinkingAsked(thinking) && refusesReasoning(model)],
    ["cache_control", cache !== undefined],
    ["user", !isShort(user)],
    ["prompt_cache_key", !isShort(promptCacheKey)],
    ["service_tier", serviceTier !== undefined && !tiers.has(serviceTier)],
  ];
  return [...names.flatMap(([name, isLeftOut]) => (isLeftOut ? [name] : [])), ...Object.keys(others)];
}

/** Throws `invalid_request` if the format cannot express a member that must not be lost. */
function requireSayable({ sampling, choices }: Conversation): void {
  if (choices !== undefined && choices !== 1) {
    throw fieldError("n", "must be 1: the model's server speaks Responses, which has one answer to a request.");
  }
  const unsayable: readonly (readonly [string, unknown, unknown])[] = [
    [sampling.stopPlace ?? "stop", sampling.stop?.length ?? 0, 0],
    ["seed", sampling.seed, undefined],
    ["top_k", sampling.topK, undefined],
    ["frequency_penalty", sampling.frequencyPenalty ?? 0, 0],
    ["presence_penalty", sampling.presencePenalty ?? 0, 0],
    ["logit_bias", Object.keys(sampling.logitBias ?? {}).length, 0],
  ];
  for (const [name, value, usual] of unsayable) {
    if (value !== usual) {
      throw fieldError(
        name,
        "cannot be kept: the model's server speaks Responses, which has no such parameter. Leave it out.",
      );
    }
  }
}

function itemsOf(turn: ConversationMessage): Json[] {
  switch (turn.role) {
    case "assistant":
      return turn.parts.length === 0 ? [] : saidItems(turn.parts);
    case "tool":
      return [resultItem(turn)];
    default:
      return [{ type: "message", role: turn.role, content: turn.parts.map(partToWire) }];
  }
}

/** Joins adjacent texts into one message. A call or reasoning becomes an item of its own. */
function saidItems(parts: readonly AnswerPart[]): Json[] {
  const items: Json[] = [];
  let content: Json[] | undefined;
  for (const part of parts) {
    if (part.type === "text" || part.type === "refusal") {
      if (!content) {
        content = [];
        items.push({ type: "message", role: "assistant", content });
      }
      content.push(
        part.type === "text" ? { type: "output_text", text: part.text } : { type: "refusal", refusal: part.text },
      );
      continue;
    }
    content = undefined;
    const item = part.type === "call" ? callItem(part) : reasoningItem(part);
    if (item) items.push(item);
  }
  return items;
}

function callItem({ kind, callId, name, namespace, input }: Extract<AnswerPart, { type: "call" }>): Json {
  const own =
    kind === "custom" ? { type: "custom_tool_call", input } : { type: "function_call", arguments: input || "{}" };
  return { ...own, call_id: callId, name, ...(namespace === undefined ? {} : { namespace }) };
}

/**
 * Returns undefined for reasoning without OpenAI's own proof. Without this proof, OpenAI refuses the text of reasoning
 * and does not know its summary.
 */
function reasoningItem({ text, proof }: Extract<AnswerPart, { type: "reasoning" }>): Json | undefined {
  if (proof?.kind !== "encrypted") return undefined;
  const summary = text === "" ? [] : [{ type: "summary_text", text }];
  return { type: "reasoning", summary, encrypted_content: proof.data };
}

function resultItem({ callId, parts, kind, failed }: ResultTurn): Json {
  const type = kind === "custom" ? "custom_tool_call_output" : "function_call_output";
  const prefix = failed ? "The tool failed: " : "";
  const [only] = parts;
  if (!only) return { type, call_id: callId, output: prefix };
  if (parts.length === 1 && only.type === "text") return { type, call_id: callId, output: prefix + only.text };
  const output = parts.map(partToWire);
  return { type, call_id: callId, output: failed ? [{ type: "input_text", text: prefix }, ...output] : output };
}

function partToWire(part: Part): Json {
  switch (part.type) {
    case "text":
      return { type: "input_text", text: part.text };
    case "image":
      return { type: "input_image", ...imageSource(part.source, part.place), detail: part.detail ?? "auto" };
    case "audio":
      return { type: "input_audio", input_audio: { data: part.data, format: part.format } };
    case "file":
      return fileToWire(part);
  }
}

function imageSource(source: MediaSource, place: string): Json {
  if (source.kind === "url") return { image_url: source.url };
  if (source.kind === "data") return { image_url: `data:${source.mediaType};base64,${source.data}` };
  if (source.kind === "id") throw unknownFile(place);
  throw fieldError(place, "must be an image, and not text.");
}

function fileToWire({ source, name, place }: Extract<Part, { type: "file" }>): Json {
  const named = name === undefined ? {} : { filename: name };
  if (source.kind === "url") return { type: "input_file", file_url: source.url, ...named };
  if (source.kind === "data") {
    const file_data = `data:${source.mediaType};base64,${source.data}`;
    return { type: "input_file", filename: fileName(name, source.mediaType), file_data };
  }
  if (source.kind === "id") throw unknownFile(place);
  return { type: "input_text", text: name === undefined ? source.text : `${name}:\n${source.text}` };
}

function unknownFile(place: string): Error {
  return fieldError(
    place,
    "names a file of another store, which this model's server cannot read. Send its data, or its address.",
  );
}

function toolsToWire(tools: readonly Tool[]): Json[] {
  const wire: Json[] = [];
  const namespaces = new Map<string, Json[]>();
  for (const tool of tools) {
    const { namespace } = tool;
    if (namespace === undefined) wire.push(toolToWire(tool));
    else {
      let inner = namespaces.get(namespace);
      if (!inner) {
        inner = [];
        namespaces.set(namespace, inner);
        wire.push({ type: "namespace", name: namespace, description: namespace, tools: inner });
      }
      inner.push(toolToWire(tool));
    }
  }
  return wire;
}

function toolToWire({ kind, name, description, parameters, strict, format }: Tool): Json {
  if (kind === "custom") return { type: "custom", name, description, format };
  // OpenAI's default for `strict` is true, but many schemas do not meet the rules of strict mode.
  return { type: "function", name, description, parameters: toolSchema(parameters, strict), strict: strict ?? false };
}

function choiceToWire(choice: ToolChoice, tools: readonly Tool[]): unknown {
  if (tools.length === 0) {
    if (choice.type === "auto" || choice.type === "none") return undefined;
    throw fieldError("tool_choice", "asks for a call, but there are no tools; name them in `tools`, or leave it out.");
  }
  if (choice.type !== "tool") return choice.type;
  const { kind: type, name, namespace } = choice;
  return { type, name, ...(namespace === undefined ? {} : { namespace }) };
}

function samplingToWire({ temperature, topP, logprobs }: Sampling): Json {
  return { temperature, top_p: topP, top_logprobs: logprobs === undefined || logprobs === 0 ? undefined : logprobs };
}

function textToWire(output: OutputForm | undefined, verbosity: string | undefined): Json | undefined {
  const format = output && formatToWire(output);
  return format || verbosity !== undefined ? { format, verbosity } : undefined;
}

function formatToWire(output: OutputForm): Json {
  if (output.type === "text") return { type: "text" };
  if (output.type === "json") return { type: "json_object" };
  const { name, description, schema, strict } = output;
  return { type: "json_schema", name, description, schema, strict: strict ?? false };
}

/** The effort for each range of thinking budgets. `most` is the maximum budget in tokens. */
const budgets: readonly (readonly [most: number, effort: string])[] = [
  [1_024, "minimal"],
  [4_096, "low"],
  [16_384, "medium"],
];

function reasoningToWire({ enabled, effort, budget, shown }: Thinking, model: string): Json {
  const summary = shown === "omitted" ? undefined : (shown ?? "auto");
  const fitting = (wanted: string) => (isOpenaiThinker(model) ? takenEffort(wanted, model) : wanted);
  if (enabled === false) return { effort: fitting("none") };
  const ofBudget = budget === undefined ? undefined : (budgets.find(([most]) => budget <= most)?.[1] ?? "high");
  const wanted = effort ?? ofBudget;
  return { effort: wanted === undefined ? undefined : fitting(wanted), summary };
}

function isThinkingAsked(thinking: Thinking | undefined): boolean {
  return thinking !== undefined && thinking.enabled !== false && thinking.effort !== "none";
}
