// POST /completions, the legacy text completion: prompts as text or tokens, echo, and fill-in-the-middle.
import type { LlamaGrammarEvaluationState, Token } from "node-llama-cpp";
import type { Generation } from "../generate.ts";
import { plainSyntax } from "../reply/reply-format.ts";
import { type ReplyEvent, ReplyReader } from "../reply/reply-reader.ts";
import type { Runtime } from "../runtime.ts";
import { readSampling } from "../sampling.ts";
import { type Answer, type AnswerFormat, answer, type FinishedChoice } from "./answer.ts";
import type { Fields } from "./fields.ts";
import { checkMaxTokens, checkPromptLength, refuseHopelessLength } from "./prompt-length.ts";
import { invalid } from "./request-error.ts";
import { readChoiceCount, readStops, readStreaming, refuseLogprobs } from "./request-parts.ts";
import { isTokenArray, readTextInputs, type TextInput } from "./text-input.ts";

/** The default of `max_tokens` in the OpenAI API. */
const defaultMaxTokens = 16;
const maxGenerations = 2048;

export async function answerCompletion(runtime: Runtime, fields: Fields, signal: AbortSignal): Promise<Response> {
  return await answer(runtime, readCompletion(runtime, fields), signal);
}

function readCompletion(runtime: Runtime, fields: Fields): Answer {
  refuseLogprobs(fields);
  const count = readChoiceCount(fields);
  if ((fields.integer("best_of", 1, Number.MAX_SAFE_INTEGER) ?? count) > count) {
    throw invalid("best_of: the built-in engine cannot rank answers. Leave it out, or send n instead.");
  }
  const suffix = fields.string("suffix");
  const inputs = readTextInputs(fields, "prompt", runtime.vocabularySize);
  if (inputs.length * count > maxGenerations)
    throw invalid(`prompt times n may make at most ${maxGenerations} choices.`);
  const echo = fields.boolean("echo") ?? false;
  const sampling = readSampling(fields, runtime.library, runtime.model, runtime.vocabularySize);
  const stops = readStops(fields);
  const { stream, includeUsage } = readStreaming(fields);
  const asked = fields.integer("max_tokens", 0, Number.MAX_SAFE_INTEGER) ?? defaultMaxTokens;
  const maxTokens = checkMaxTokens(runtime, asked, "max_tokens");
  const prompts = inputs.map((input, index) =>
    tokenizePrompt(runtime, input, suffix, inputs.length > 1 ? index : undefined),
  );
  const generations = prompts.flatMap((prompt, index) =>
    Array.from(
      { length: count },
      (_, copy): Generation => ({
        prompt,
        maxTokens,
        sampling,
        choice: index * count + copy,
        startReader: () =>
          new ReplyReader<LlamaGrammarEvaluationState>({
            syntax: plainSyntax,
            stops,
            startsInReasoning: false,
            continuesText: true,
            answerGrammar: undefined,
            tools: [],
            startsInCall: false,
            parallelCalls: false,
            startGrammar: () => {
              throw new Error("a completion has no grammar");
            },
          }),
      }),
    ),
  );
  const echoes = echo
    ? inputs.map((input) => (typeof input === "string" ? input : runtime.model.detokenize(input)))
    : [];
  return {
    stream,
    includeUsage,
    promptTokens: prompts.reduce((sum, prompt) => sum + prompt.length, 0),
    generations,
    format: completionFormat(runtime.modelId, includeUsage, (choice) => echoes[Math.floor(choice / count)] ?? ""),
  };
}

/**
 * Returns the tokens of a prompt. Control tokens that a text spells out are read as plain text. Token arrays are
 * used as they are.
 */
function tokenizePrompt(
  runtime: Runtime,
  input: TextInput,
  suffix: string | undefined,
  index: number | undefined,
): Token[] {
  const { model } = runtime;
  const name = index === undefined ? "prompt" : `prompt[${index}]`;
  if (typeof input === "string") refuseHopelessLength(runtime, input.length + (suffix?.length ?? 0), name);
  const text = isTokenArray(input) ? [...input] : model.tokenize(input);
  const beginning = model.tokens.shouldPrependBosToken && !isTokenArray(input) ? model.tokens.bos : null;
  const prompt = suffix === undefined ? text : fillInTheMiddle(runtime, text, suffix);
  if (beginning !== null && prompt[0] !== beginning) prompt.unshift(beginning);
  // An empty prompt becomes the token that starts a document.
  const start = model.tokens.bos ?? model.tokens.eos;
  if (prompt.length === 0 && start !== null) prompt.push(start);
  if (prompt.length === 0) throw invalid(`${name} must not be empty for this model.`);
  checkPromptLength(runtime, prompt, name);
  return prompt;
}

function fillInTheMiddle({ model }: Runtime, before: Token[], suffix: string): Token[] {
  const { prefix, suffix: suffixToken, middle } = model.tokens.infill;
  if (prefix === null || suffixToken === null) {
    throw invalid("suffix: this model was not trained to fill in text. Leave it out, or use a code model.");
  }
  const after = model.tokenize(suffix);
  // Models without a middle token get the suffix first, and continue from the prefix.
  if (middle === null) return [suffixToken, ...after, prefix, ...before];
  return [prefix, ...before, suffixToken, ...after, middle];
}

function completionFormat(modelId: string, includeUsage: boolean, echo: (choice: number) => string): AnswerFormat {
  const id = `cmpl-${crypto.randomUUID().replaceAll("-", "")}`;
  const created = Math.floor(Date.now() / 1000);
  const head = `{"id":"${id}","object":"text_completion","created":${created},"model":${JSON.stringify(modelId)},"choices":[`;
  const tail = includeUsage ? '],"usage":null}' : "]}";
  const choice = (index: number, text: string, finishReason: string) =>
    `{"text":${JSON.stringify(text)},"index":${index},"logprobs":null,"finish_reason":${finishReason}}`;
  return {
    chunks: {
      first: (index) => (echo(index) === "" ? undefined : head + choice(index, echo(index), "null") + tail),
      event: (index, event) => head + choice(index, textOf(event), "null") + tail,
      last: (index, { finishReason }) => head + choice(index, "", `"${finishReason}"`) + tail,
      usage: (usage) => `${head}],"usage":${JSON.stringify(usage)}}`,
    },
    whole: (choices, usage) => {
      const texts = choices.map(({ events, outcome }: FinishedChoice, index) =>
        choice(index, echo(index) + events.map(textOf).join(""), `"${outcome.finishReason}"`),
      );
      return `${head}${texts.join(",")}],"usage":${JSON.stringify(usage)}}`;
    },
  };
}

function textOf(event: ReplyEvent): string {
  return event.kind === "text" ? event.text : "";
}
