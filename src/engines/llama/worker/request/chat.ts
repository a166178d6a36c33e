// POST /chat/completions: validates the request and prepares its generations.
import type { Token } from "node-llama-cpp";
import { GrammarSource } from "../json/grammar-source.ts";
import { anyObjectGrammar } from "../json/json-grammar.ts";
import { schemaGrammar } from "../json/json-schema-grammar.ts";
import { ReplyReader } from "../reply/reply-reader.ts";
import type { Chat, Runtime } from "../runtime.ts";
import { readSampling } from "../sampling.ts";
import { type Answer, answer } from "./answer.ts";
import { readHistory } from "./chat-history.ts";
import { type RenderedPrompt, renderPrompt } from "./chat-prompt.ts";
import { chatFormat } from "./chat-wire.ts";
import type { Fields } from "./fields.ts";
import { checkMaxTokens, checkPromptLength } from "./prompt-length.ts";
import { invalid } from "./request-error.ts";
import { readChoiceCount, readStops, readStreaming, refuseLogprobs } from "./request-parts.ts";
import { readToolUse, type ToolUse } from "./tools.ts";

export async function answerChat(runtime: Runtime, fields: Fields, signal: AbortSignal): Promise<Response> {
  return await answer(runtime, readChat(runtime, fields), signal);
}

/** Counts the tokens of a prompt, even of one that is too long for the model. */
export function countChat(runtime: Runtime, fields: Fields): Response {
  return Response.json({ object: "response.input_tokens", input_tokens: chatTokens(runtime, fields).length });
}

/** Returns the tokens of the prompt, without a reply. */
export function chatTokens(runtime: Runtime, fields: Fields): readonly Token[] {
  const tools = readToolUse(fields, requireChat(runtime).syntax.calls !== undefined);
  return readPrompt(runtime, fields, tools === "ignored" ? undefined : tools).tokens;
}

function requireChat({ chat }: Runtime): Chat {
  if (chat !== undefined) return chat;
  throw invalid("This model's file has no chat template, so it cannot chat. Use /completions.");
}

function readPrompt(runtime: Runtime, fields: Fields, tools: ToolUse | undefined): RenderedPrompt {
  const messages = fields.array("messages");
  if (messages === undefined) throw invalid("messages is required: an array of messages.");
  const chat = requireChat(runtime);
  return renderPrompt(runtime, chat, {
    history: readHistory(messages),
    functions: tools?.functions,
    opensReasoning: tools?.forced !== true && fields.value("reasoning_effort") !== "none",
    ending: tools?.forced === true ? (chat.syntax.calls?.opening ?? "") : "",
  });
}

function readChat(runtime: Runtime, fields: Fields): Answer {
  const { syntax } = requireChat(runtime);
  refuseLogprobs(fields);
  const read = readToolUse(fields, syntax.calls !== undefined);
  const tools = read === "ignored" ? undefined : read;
  const answerGrammar = tools?.forced === true ? undefined : readResponseFormat(fields);
  const grammars = new GrammarSource(runtime);
  if (answerGrammar !== undefined) grammars.check(answerGrammar, "response_format");
  for (const { name, grammar } of tools?.callable ?? []) grammars.check(grammar, `tools: the parameters of ${name}`);
  const sampling = readSampling(fields, runtime.library, runtime.model, runtime.vocabularySize);
  const stops = readStops(fields);
  const { stream, includeUsage } = readStreaming(fields);
  const count = readChoiceCount(fields);
  const limitName = fields.value("max_completion_tokens") === undefined ? "max_tokens" : "max_completion_tokens";
  const maxTokens = checkMaxTokens(runtime, fields.integer(limitName, 1, Number.MAX_SAFE_INTEGER), limitName);
  const { tokens, startsInReasoning, continuesText } = readPrompt(runtime, fields, tools);
  checkPromptLength(runtime, tokens, "messages");
  return {
    stream,
    includeUsage,
    promptTokens: tokens.length,
    ignored: read === "ignored" ? "tools" : undefined,
    format: chatFormat(runtime.modelId, includeUsage),
    generations: Array.from({ length: count }, (_, choice) => ({
      prompt: tokens,
      maxTokens,
      sampling,
      choice,
      startReader: () =>
        new ReplyReader({
          syntax,
          stops,
          startsInReasoning,
          continuesText,
          answerGrammar,
          tools: tools?.callable ?? [],
          startsInCall: tools?.forced ?? false,
          parallelCalls: tools?.parallel ?? false,
          startGrammar: (grammar) => grammars.start(grammar),
        }),
    })),
  };
}

function readResponseFormat(fields: Fields): string | undefined {
  const format = fields.object("response_format");
  const type = format?.oneOf("type", ["text", "json_object", "json_schema"]);
  if (format !== undefined && type === undefined) throw invalid("response_format.type is required.");
  if (type === "json_object") return anyObjectGrammar();
  if (type !== "json_schema") return undefined;
  // Some APIs put `schema` beside `type` in the response format.
  const isBeside = format?.value("json_schema") === undefined && format?.value("schema") !== undefined;
  const wanted = isBeside ? format : format?.object("json_schema");
  const path = isBeside ? "response_format.schema" : "response_format.json_schema.schema";
  const schema = wanted?.value("schema");
  if (schema === undefined) throw invalid("response_format.json_schema.schema is required: a JSON Schema.");
  const strict = wanted?.boolean("strict") ?? false;
  return schemaGrammar(schema, { path, strict });
}
