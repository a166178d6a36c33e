// Parts that several schemas of the OpenAI API's requests and answers have in common.
import { z } from "zod";

export const modelId = z.string().min(1).max(256).describe("Model ID to use; `GET /v1/models` lists them.");

/** A time in Unix seconds. */
export const unixSeconds = z.int().describe("Unix time in seconds.");

/** The date on which a model is announced to end: a day in UTC, in the form that OpenAI has. */
export const shutdownDate = z.string().meta({ format: "date" });

/** Returns Unix seconds as a date in UTC. */
export function dateOf(seconds: number): string {
  return new Date(Math.min(seconds, lastSecond) * 1000).toISOString().slice(0, 10);
}

/** The last second of the year 9999, in Unix seconds. This bound exists because upstreams may report any number. */
const lastSecond = 253_402_300_799;

/** Returns the schema of the answer to a deletion. `id` names the schema in the OpenAPI document. */
export function deletedShape<Noun extends string>(noun: Noun, id: string) {
  return z.object({ object: z.literal(noun), id: z.string(), deleted: z.literal(true) }).meta({ id });
}

export const usageShape = z
  .looseObject({
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    total_tokens: z.int(),
    estimated: z
      .literal(true)
      .optional()
      .describe(
        "Present if the model server reported no usage, or less than it delivered. The figures are then estimated from the text.",
      ),
  })
  .meta({ id: "Usage" });

export const finishReason = z.enum(["stop", "length", "tool_calls", "content_filter", "function_call"]);

export const streamOptions = z
  .looseObject({
    include_usage: z
      .boolean()
      .nullish()
      .describe("Add a last chunk with `choices: []` and the usage of the whole request."),
  })
  .describe("Options for streaming. Only with `stream: true`.");

const tokenId = z.int().min(0);

/**
 * Returns the schema of a name that a model server may know although Headrace does not. Such a name is passed on
 * unchanged.
 */
export function unknownName(known: readonly string[]) {
  return z
    .string()
    .min(1)
    .max(64)
    .meta({ not: { enum: [...known] } });
}

/** The forms of `prompt` and `input`: text, and token ids. */
const tokenForms = [
  z.array(tokenId).min(1).max(1_000_000),
  z.array(z.array(tokenId).min(1).max(1_000_000)).min(1).max(2048),
] as const;

/** The schema of `prompt`. If the prompt is empty, the model begins a text of its own. */
export const promptShape = z.union([z.string(), z.array(z.string()).min(1).max(2048), ...tokenForms]);

/** An image, or another input from which a model server makes embeddings. */
const inputObject = z.looseObject({});
export const inputShape = z.union([
  z.string().min(1),
  z
    .array(z.union([z.string().min(1), inputObject]))
    .min(1)
    .max(2048),
  ...tokenForms,
  inputObject,
]);

/** This value of the token limit means "no limit" to LM Studio, llama.cpp and Headrace. */
export const noTokenLimit = -1;

export function tokenLimit(least: number) {
  return z.union([z.int().min(least), z.literal(noTokenLimit)]);
}

/**
 * Sampling parameters that chat completions and legacy completions have in common (OpenAI API reference, "Create chat
 * completion").
 */
export const samplingParameters = {
  temperature: z.number().min(0).max(2).nullish().describe("Sampling temperature. Default 1."),
  top_p: z
    .number()
    .min(0)
    .max(1)
    .nullish()
    .describe(
      "Nucleus sampling: sample from the smallest set of tokens with this probability mass. 0: the most likely token.",
    ),
  frequency_penalty: z.number().min(-2).max(2).nullish().describe("Penalises tokens by how often they occurred."),
  presence_penalty: z.number().min(-2).max(2).nullish().describe("Penalises tokens that occurred at all."),
  max_tokens: tokenLimit(1)
    .nullish()
    .describe("Maximum number of tokens to generate. Default, and with -1: the rest of the model's context."),
  max_completion_tokens: tokenLimit(1)
    .nullish()
    .describe("Same as `max_tokens`, and takes precedence if both are sent."),
  stop: z
    .union([z.string().max(1024), z.array(z.string().min(1).max(1024)).max(16)])
    .nullish()
    .describe(
      "Up to 16 strings at which generation stops. The answer does not include the stop string. Empty strings are ignored.",
    ),
  seed: z
    .number()
    .meta({ type: "integer" })
    .nullish()
    .describe(
      "Seed for sampling. With the same seed and parameters the answer is the same, if the model server supports it.",
    ),
  n: z.int().min(1).max(128).nullish().describe("Number of choices to generate. Default 1."),
  logit_bias: z
    .record(z.string().regex(/^\d{1,9}$/), z.number().min(-100).max(100))
    .nullish()
    .describe("Map of token ids to biases from -100 (never) to 100 (always)."),
  user: z.string().max(1024).nullish().describe("Your own id of the end user. Passed on to the model server."),
  stream: z.boolean().nullish().describe("Answer as Server-Sent Events. Default false."),
  stream_options: streamOptions.nullish(),
} as const;

/** Returns the number of separate texts or other inputs that a `prompt` or `input` contains. */
export function countTexts(value: unknown): number {
  return Array.isArray(value) && typeof value[0] !== "number" ? value.length : 1;
}
