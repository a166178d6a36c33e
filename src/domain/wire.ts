// Pieces that several request and response shapes of the OpenAI API share.
import { z } from "zod";

export const modelId = z.string().min(1).max(256).describe("Model ID to use; `GET /v1/models` lists them.");

/** Unix time. */
export const unixSeconds = z.int().describe("Unix time in seconds.");

export const usageShape = z
  .looseObject({
    prompt_tokens: z.int(),
    completion_tokens: z.int(),
    total_tokens: z.int(),
    estimated: z
      .literal(true)
      .optional()
      .describe("Present when the model server did not report usage and the figures are estimated from the text."),
  })
  .meta({ id: "Usage" });

export const finishReason = z.enum(["stop", "length", "tool_calls", "content_filter", "function_call"]);

export const streamOptions = z
  .looseObject({
    include_usage: z
      .boolean()
      .nullish()
      .describe("Adds one last chunk with `choices: []` and the usage of the whole request."),
  })
  .describe("Options for streaming; only with `stream: true`.");

const tokenId = z.int().min(0);

/** Text or token forms of `prompt` and `input`. */
function textOrTokens(shortestText: number) {
  return z.union([
    z.string().min(shortestText),
    z.array(z.string().min(shortestText)).min(1).max(2048),
    z.array(tokenId).min(1).max(1_000_000),
    z.array(z.array(tokenId).min(1).max(1_000_000)).min(1).max(2048),
  ]);
}

/** An empty prompt lets the model begin a text. */
export const promptShape = textOrTokens(0);
export const inputShape = textOrTokens(1);

/** Sampling parameters that chat and legacy completions share. OpenAI API reference, "Create chat completion". */
export const samplingParameters = {
  temperature: z.number().min(0).max(2).nullish().describe("Sampling temperature. Default 1."),
  top_p: z
    .number()
    .gt(0)
    .max(1)
    .nullish()
    .describe("Nucleus sampling: the smallest set of tokens with this probability mass."),
  frequency_penalty: z.number().min(-2).max(2).nullish().describe("Penalises tokens by how often they occurred."),
  presence_penalty: z.number().min(-2).max(2).nullish().describe("Penalises tokens that occurred at all."),
  max_tokens: z
    .int()
    .min(1)
    .nullish()
    .describe("Maximum tokens to generate. Default: what is left of the model's context."),
  stop: z
    .union([z.string().min(1).max(1024), z.array(z.string().min(1).max(1024)).max(16)])
    .nullish()
    .describe("Up to 16 strings at which generation stops; the stop string is not returned."),
  seed: z
    .number()
    .meta({ type: "integer" })
    .nullish()
    .describe("The same seed and parameters give the same answer where the model server can."),
  n: z.int().min(1).max(128).nullish().describe("How many choices to generate. Default 1."),
  logit_bias: z
    .record(z.string().regex(/^\d{1,9}$/), z.number().min(-100).max(100))
    .nullish()
    .describe("Token id to bias, -100 (never) to 100 (always)."),
  user: z.string().max(1024).nullish().describe("Your own id of the end user; passed on."),
  stream: z.boolean().nullish().describe("Answer as Server-Sent Events. Default false."),
  stream_options: streamOptions.nullish(),
} as const;

export type TextOrTokens = z.infer<typeof promptShape>;

/** How many separate texts a `prompt` or `input` holds. */
export function countTexts(value: TextOrTokens): number {
  return Array.isArray(value) && typeof value[0] !== "number" ? value.length : 1;
}
