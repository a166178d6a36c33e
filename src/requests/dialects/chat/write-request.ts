// Writes a conversation as a request for chat completions, for any server that supports them.
import { fieldError } from "../../../base/errors.ts";
import { EngineTools } from "../conversation/call-names.ts";
import type {
  Conversation,
  OutputForm,
  Sampling,
  Thinking,
  ToolChoice,
  WrittenRequest,
} from "../conversation/conversation.ts";
import { isOpenaiThinker, refusesReasoning, takenEffort } from "../openai/thinking-models.ts";
import type { Json } from "./json-value.ts";
import { rulesOf, type ServerRules } from "./server-rules.ts";
import { writeMessages } from "./write-messages.ts";

/** Matches OpenAI's open models, which always think. */
const alwaysThinks = /gpt-oss/i;
/** Thinking budgets in tokens, as efforts: from the first number on medium, and from the second number on high. */
const [mediumBudget, highBudget] = [4_096, 16_384];

/**
 * Writes the members that most servers accept, except those that the server at `host` is known to refuse. Throws
 * `invalid_request` that names the place if a file cannot be sent, or if a call is forced but there are no tools.
 */
export function writeChatRequest(conversation: Conversation, model: string, host?: string): WrittenRequest {
  const { turns, sampling, stream, maxTokens, choices, output } = conversation;
  const tools = new EngineTools(conversation.tools);
  const rules = rulesOf(host);
  // Only OpenAI's reasoning models get the newer limit, because Ollama, LM Studio, Mistral and DeepSeek know only
  // `max_tokens`.
  const isThinker = isOpenaiThinker(model);
  const thinking = thinkingMembers(conversation.thinking, model, rules);
  const body = {
    model,
    messages: writeMessages(turns, tools, { rules, model }),
    ...toolMembers(conversation, tools),
    response_format: output && formatOf(output),
    ...thinking,
    [isThinker ? "max_completion_tokens" : "max_tokens"]: maxTokens,
    ...samplingMembers(sampling),
    verbosity: isThinker ? sampling.verbosity : undefined,
    n: choices === 1 ? undefined : choices,
    stream: stream || undefined,
    stream_options: stream ? { include_usage: true } : undefined,
  };
  return { body: JSON.stringify(body), leftOut: leftOut(conversation, model, thinking), names: tools.names };
}

function toolMembers(conversation: Conversation, tools: EngineTools): Json {
  const { toolChoice, parallelCalls } = conversation;
  if (toolChoice?.type === "none") return {};
  if (conversation.tools.length === 0) {
    if (toolChoice === undefined || toolChoice.type === "auto") return {};
    throw fieldError("tool_choice", "asks for a call, but there are no tools; name them in `tools`, or leave it out.");
  }
  return {
    tools: conversation.tools.map((tool) => {
      const { name, description, parameters, strict } = tools.functionOf(tool);
      const described = { name, description, parameters, strict: strict || undefined };
      return { type: "function", function: described };
    }),
    tool_choice: toolChoice && choiceOf(toolChoice, tools),
    parallel_tool_calls: parallelCalls,
  };
}

function choiceOf(choice: ToolChoice, tools: EngineTools): string | Json {
  if (choice.type !== "tool") return choice.type;
  return { type: "function", function: { name: tools.nameOf(choice) } };
}

export function formatOf(output: OutputForm): Json | undefined {
  if (output.type === "text") return undefined;
  if (output.type === "json") return { type: "json_object" };
  const { name, description, schema, strict } = output;
  return { type: "json_schema", json_schema: { name, description, schema, strict } };
}

/**
 * Returns the members that control thinking. To disable thinking, Ollama, LM Studio and the built-in engine read
 * `reasoning_effort`. For the same purpose, vLLM, SGLang and llama-server read template arguments. OpenAI refuses
 * unknown members.
 */
function thinkingMembers(thinking: Thinking | undefined, model: string, rules: ServerRules): Json {
  if (!thinking || refusesReasoning(model)) return {};
  const isThinker = isOpenaiThinker(model);
  const isOff = thinking.enabled === false || thinking.effort === "none";
  const wanted = effortOf(thinking, isOff);
  if (wanted === undefined) return {};
  const fitting = isThinker
    ? takenEffort(wanted, model)
    : isOff && alwaysThinks.test(model)
      ? "low"
      : commonEffort(wanted);
  const effort = rules.effort(fitting, model);
  const takesTemplate = rules.takesMore && !isThinker && fitting === "none";
  return {
    reasoning_effort: effort,
    ...(takesTemplate ? { chat_template_kwargs: { enable_thinking: false } } : {}),
  };
}

function effortOf({ effort, budget }: Thinking, isOff: boolean): string | undefined {
  if (isOff) return "none";
  if (effort !== undefined || budget === undefined) return effort;
  return budget < mediumBudget ? "low" : budget < highBudget ? "medium" : "high";
}

/**
 * Returns the closest of the three efforts that every server with efforts knows, because Ollama and LM Studio refuse
 * others.
 */
function commonEffort(effort: string): string {
  if (effort === "minimal") return "low";
  return effort === "xhigh" || effort === "max" ? "high" : effort;
}

function samplingMembers(sampling: Sampling): Json {
  const { logprobs } = sampling;
  return {
    temperature: sampling.temperature,
    top_p: sampling.topP,
    top_k: sampling.topK,
    frequency_penalty: sampling.frequencyPenalty,
    presence_penalty: sampling.presencePenalty,
    seed: sampling.seed,
    stop: sampling.stop,
    logit_bias: sampling.logitBias,
    logprobs: logprobs === undefined ? undefined : true,
    top_logprobs: logprobs || undefined,
  };
}

/**
 * Returns the names of the members that the chat request lacks. Hints are among them, because cloud servers refuse
 * unknown members.
 */
function leftOut({ cache, hints, others, sampling, thinking }: Conversation, model: string, written: Json): string[] {
  const names = Object.keys(others);
  const { effort, budget } = thinking ?? {};
  const isAsked = budget !== undefined || (effort !== undefined && effort !== "none");
  if (isAsked && written["reasoning_effort"] === undefined) names.push("reasoning");
  if (cache) names.push("cache_control");
  if (hints.user !== undefined) names.push("user");
  if (hints.serviceTier !== undefined) names.push("service_tier");
  if (hints.promptCacheKey !== undefined) names.push("prompt_cache_key");
  if (hints.metadata !== undefined) names.push("metadata");
  if (!isOpenaiThinker(model) && sampling.verbosity !== undefined) names.push("verbosity");
  return names;
}
