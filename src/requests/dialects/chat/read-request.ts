// Reads a chat request as a conversation, which can then be written in another format.
import { fieldError } from "../../../base/errors.ts";
import { cacheOf } from "../conversation/cache-marks.ts";
import type { Conversation, Hints, OutputForm, Sampling, Thinking } from "../conversation/conversation.ts";
import { booleanOf, isObject, type Json, listOf, numberOf, objectOf, textOf } from "./json-value.ts";
import { readMessages } from "./read-messages.ts";
import { readToolUse } from "./read-tools.ts";

/** Members that this file reads, or that only the gateway uses. */
const known = new Set([
  ...["model", "messages", "stream", "stream_options", "store", "n"],
  ...["tools", "tool_choice", "parallel_tool_calls", "functions", "function_call"],
  ...["response_format", "max_tokens", "max_completion_tokens"],
  ...["reasoning_effort", "reasoning", "thinking"],
  ...["temperature", "top_p", "top_k", "frequency_penalty", "presence_penalty", "seed", "stop", "logit_bias"],
  ...["logprobs", "top_logprobs", "verbosity"],
  ...["user", "safety_identifier", "service_tier", "prompt_cache_key", "metadata", "cache_control"],
]);

/**
 * Reads a body that fits `chatRequest` of `src/wire/chat.ts`. Throws `invalid_request` that names the field if a member
 * changes the answer and no other format can express it: audio output, web search, and unknown roles, parts and tools.
 */
export function readChatRequest(body: Json): Conversation {
  refuseOwnOutput(body);
  const output = readOutput(body["response_format"]);
  const thinking = readThinking(body);
  const maxTokens = limitOf(body["max_completion_tokens"]) ?? limitOf(body["max_tokens"]);
  const choices = numberOf(body["n"]);
  const cache = cacheOf(body);
  return {
    turns: readMessages(listOf(body["messages"])),
    ...readToolUse(body),
    ...(output ? { output } : {}),
    ...(thinking ? { thinking } : {}),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    sampling: readSampling(body),
    ...(choices === undefined ? {} : { choices }),
    stream: body["stream"] === true,
    ...(cache ? { cache } : {}),
    hints: readHints(body),
    others: othersOf(body),
  };
}

function refuseOwnOutput(body: Json): void {
  const others = listOf(body["modalities"]).filter((one) => one !== "text");
  if (others.length > 0) {
    throw fieldError(
      "modalities",
      `this model answers in text alone, not in ${others.map(String).join(", ")}; leave it out, or ask a model that has it.`,
    );
  }
  if (isObject(body["web_search_options"])) {
    throw fieldError(
      "web_search_options",
      "the web is searched by the model's maker, which this model has none of; leave it out, or ask a model that has it.",
    );
  }
}

function readOutput(format: unknown): OutputForm | undefined {
  if (!isObject(format)) return undefined;
  const { type, json_schema } = format;
  if (type === "text") return { type };
  if (type === "json_object") return { type: "json" };
  if (type !== "json_schema") {
    throw fieldError(
      "response_format.type",
      `\`${String(type)}\` is a form that only some model servers know, and this model is asked in another format; use json_schema, json_object or text.`,
    );
  }
  const { name, description, schema, strict } = objectOf(json_schema);
  if (!isObject(schema)) throw fieldError("response_format.json_schema.schema", "is missing.");
  const about = textOf(description);
  const isStrict = booleanOf(strict);
  return {
    type: "schema",
    name: textOf(name) ?? "answer",
    ...(about === undefined ? {} : { description: about }),
    schema,
    ...(isStrict === undefined ? {} : { strict: isStrict }),
  };
}

/**
 * Reads options for thinking: OpenAI's `reasoning_effort`, OpenRouter's `reasoning`, and Anthropic's `thinking`, which
 * DeepSeek and LiteLLM have too. `enable_thinking` is an argument for the chat templates of vLLM, SGLang and
 * llama-server.
 */
function readThinking(body: Json): Thinking | undefined {
  const reasoning = objectOf(body["reasoning"]);
  const { type, budget_tokens } = objectOf(body["thinking"]);
  const template = objectOf(body["chat_template_kwargs"])["enable_thinking"];
  const effort = textOf(body["reasoning_effort"]) ?? textOf(reasoning["effort"]);
  const budget = numberOf(reasoning["max_tokens"]) ?? numberOf(budget_tokens);
  const asked = type === "disabled" ? false : type === "enabled" || type === "adaptive" ? true : undefined;
  const enabled = effort === "none" ? false : (booleanOf(reasoning["enabled"]) ?? asked ?? booleanOf(template));
  const shown = reasoning["exclude"] === true ? "omitted" : undefined;
  const thinking: Thinking = {
    ...(enabled === undefined ? {} : { enabled }),
    ...(effort === undefined ? {} : { effort }),
    ...(budget === undefined ? {} : { budget }),
    ...(shown === undefined ? {} : { shown }),
  };
  return Object.keys(thinking).length === 0 ? undefined : thinking;
}

/** In LM Studio and llama.cpp, -1 means no limit. */
function limitOf(value: unknown): number | undefined {
  const limit = numberOf(value);
  return limit !== undefined && limit > 0 ? limit : undefined;
}

function readSampling(body: Json): Sampling {
  const { stop, logit_bias: bias, logprobs } = body;
  const stops = (typeof stop === "string" ? [stop] : listOf(stop)).filter(
    (one) => textOf(one) !== undefined,
  ) as string[];
  // Some servers take the number of alternatives in `logprobs`, as in legacy completions.
  const shown = logprobs === true ? (numberOf(body["top_logprobs"]) ?? 0) : numberOf(logprobs);
  const given: Sampling = {
    temperature: numberOf(body["temperature"]),
    topP: numberOf(body["top_p"]),
    topK: numberOf(body["top_k"]),
    frequencyPenalty: numberOf(body["frequency_penalty"]),
    presencePenalty: numberOf(body["presence_penalty"]),
    seed: numberOf(body["seed"]),
    stop: stops.length > 0 ? stops : undefined,
    logitBias: isObject(bias) && Object.keys(bias).length > 0 ? (bias as Record<string, number>) : undefined,
    logprobs: shown,
    verbosity: textOf(body["verbosity"]),
  };
  return saidOnly(given);
}

function readHints(body: Json): Hints {
  const { metadata } = body;
  return saidOnly({
    user: textOf(body["user"]) ?? textOf(body["safety_identifier"]),
    serviceTier: textOf(body["service_tier"]),
    promptCacheKey: textOf(body["prompt_cache_key"]),
    metadata: isObject(metadata) ? metadata : undefined,
  });
}

/**
 * Returns the members that this file does not read, so that they are reported as ignored. Members with their default
 * value are left out.
 */
function othersOf(body: Json): Record<string, unknown> {
  const others: [string, unknown][] = [];
  for (const [name, value] of Object.entries(body)) {
    if (known.has(name) || value === null || value === undefined) continue;
    if (name === "modalities" || (name === "best_of" && value === 1)) continue;
    if (name === "chat_template_kwargs" && isObject(value)) {
      const { enable_thinking, ...rest } = value;
      if (Object.keys(rest).length > 0) others.push([name, rest]);
      continue;
    }
    others.push([name, value]);
  }
  return Object.fromEntries(others);
}

function saidOnly<T extends object>(members: T): T {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T;
}
