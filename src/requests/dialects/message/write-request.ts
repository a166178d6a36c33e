// Writes a conversation as the body of a Messages request, for Anthropic and compatible servers.

import { fieldError } from "../../../base/errors.ts";
import { EngineTools } from "../conversation/call-names.ts";
import type { AnswerPart, Conversation, Part, Tool, WrittenRequest } from "../conversation/conversation.ts";
import { closedSchema } from "../conversation/strict-schema.ts";
import type { Json } from "./json.ts";
import { marked } from "./write-blocks.ts";
import { writeTurns } from "./write-messages.ts";
import { writeThinking } from "./write-thinking.ts";

/**
 * The token limit if the request has none, because Messages requires a limit. It is Claude Code's default, which every
 * model at Anthropic supports. If a model has a smaller context, the caller sets a limit that fits.
 */
export const standardMaxTokens = 32_000;

/**
 * Writes a request. Throws `invalid_request` if Messages cannot express a member that must not be lost. Reasoning
 * without a signature is left out. If a thinking budget is not below the limit, it is reduced and reported as left out.
 */
export function writeRequest(conversation: Conversation, model: string): WrittenRequest {
  refuseUnknown(conversation);
  const tools = new EngineTools(conversation.tools);
  const { system, messages } = writeTurns(conversation, tools);
  const { output, sampling, hints, stream } = conversation;
  const limit = conversation.maxTokens ?? Math.max(standardMaxTokens, 2 * (conversation.thinking?.budget ?? 0));
  const { thinking, effort, isLess = false } = writeThinking(conversation, model, limit);
  const format = output?.type === "schema" ? { type: "json_schema", schema: closedSchema(output.schema) } : undefined;
  const body: Json = {
    model,
    max_tokens: limit,
    system,
    messages,
    tools: conversation.tools.length > 0 ? conversation.tools.map((tool) => toolOf(tool, tools)) : undefined,
    tool_choice: choiceOf(conversation, tools),
    thinking,
    output_config: effort === undefined && !format ? undefined : { effort, format },
    stop_sequences: sampling.stop && sampling.stop.length > 0 ? sampling.stop : undefined,
    temperature: unless(1, sampling.temperature),
    top_p: unless(1, sampling.topP),
    top_k: sampling.topK,
    metadata: hints.user === undefined ? undefined : { user_id: hints.user },
    service_tier: tiers.get(hints.serviceTier),
    stream: stream || undefined,
    ...marked(conversation.cache),
  };
  return { body: JSON.stringify(body), leftOut: leftOutOf(conversation, isLess), names: tools.names };
}

/** Anthropic's names for the service tiers of OpenAI and Anthropic. */
const tiers: ReadonlyMap<string | undefined, string> = new Map([
  ["auto", "auto"],
  ["default", "standard_only"],
  ["standard_only", "standard_only"],
]);

const cannot = "models whose server speaks Messages cannot do that; leave it out, or ask another model.";

function refuseUnknown({ choices, sampling }: Conversation): void {
  const { temperature, seed, frequencyPenalty, presencePenalty, logitBias, logprobs } = sampling;
  if (choices !== undefined && choices > 1) {
    throw fieldError(
      "n",
      "models whose server speaks Messages give one answer; send one request for each, or leave it out.",
    );
  }
  if (temperature !== undefined && temperature > 1) {
    throw fieldError("temperature", "models whose server speaks Messages take 0 to 1; send a value within that.");
  }
  if (seed !== undefined) throw fieldError("seed", cannot);
  if (frequencyPenalty) throw fieldError("frequency_penalty", cannot);
  if (presencePenalty) throw fieldError("presence_penalty", cannot);
  if (Object.keys(logitBias ?? {}).length > 0) throw fieldError("logit_bias", cannot);
  if (logprobs) throw fieldError("top_logprobs", cannot);
}

function toolOf(tool: Tool, tools: EngineTools): Json {
  const { name, description, parameters, strict } = tools.functionOf(tool);
  return {
    name,
    description,
    input_schema: parameters,
    strict: strict || undefined,
    ...marked(tool.cache),
  };
}

/** Returns the tool choice, or undefined if it is the model server's default. */
function choiceOf({ tools: offered, toolChoice, parallelCalls }: Conversation, tools: EngineTools): Json | undefined {
  if (offered.length === 0) {
    if (toolChoice === undefined || toolChoice.type === "auto" || toolChoice.type === "none") return undefined;
    throw fieldError("tool_choice", "asks for a call, but there are no tools; name them in `tools`, or leave it out.");
  }
  const single = parallelCalls === false ? { disable_parallel_tool_use: true } : {};
  switch (toolChoice?.type) {
    case "none":
      return { type: "none" };
    case "required":
      return { type: "any", ...single };
    case "tool":
      return { type: "tool", name: tools.nameOf(toolChoice), ...single };
    case "auto":
      return { type: "auto", ...single };
    case undefined:
      return parallelCalls === false ? { type: "auto", ...single } : undefined;
  }
}

function leftOutOf({ turns, output, sampling, hints, others }: Conversation, isLess: boolean): string[] {
  const { serviceTier, promptCacheKey, metadata } = hints;
  const hasUnproven = turns.some(
    (turn) =>
      turn.role === "assistant" &&
      turn.parts.some((part) => part.type === "reasoning" && (!part.proof || part.proof.kind === "encrypted")),
  );
  const names: readonly (readonly [string, boolean])[] = [
    ["reasoning", hasUnproven || isLess],
    ["name", turns.some((turn) => (turn.role === "user" || turn.role === "assistant") && turn.name !== undefined)],
    ["detail", turns.some((turn) => turn.parts.some(hasDetail))],
    ["description", output?.type === "schema" && output.description !== undefined],
    ["logprobs", sampling.logprobs === 0],
    ["verbosity", sampling.verbosity !== undefined && sampling.verbosity !== "medium"],
    ["service_tier", serviceTier !== undefined && !tiers.has(serviceTier)],
    ["prompt_cache_key", promptCacheKey !== undefined],
    ["metadata", metadata !== undefined],
  ];
  return [...names.flatMap(([name, isLeftOut]) => (isLeftOut ? [name] : [])), ...Object.keys(others)];
}

function hasDetail(part: Part | AnswerPart): boolean {
  return part.type === "image" && part.detail !== undefined && part.detail !== "auto";
}

function unless(standard: number, value: number | undefined): number | undefined {
  return value === standard ? undefined : value;
}
