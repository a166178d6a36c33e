// Schemas of legacy text completions in the API's requests and answers.
import { z } from "zod";
import { modelId, promptShape, samplingParameters, tokenLimit, unixSeconds, usageShape } from "./parts.ts";

/** The body of `POST /completions`. */
export const completionRequest = z
  .looseObject({
    model: modelId,
    prompt: promptShape.describe("A string, several strings, or token ids."),
    ...samplingParameters,
    max_tokens: tokenLimit(0)
      .nullish()
      .describe(
        "Maximum number of tokens to generate. 0 with `echo` returns only the prompt. Default: the model server's, often 16.",
      ),
    suffix: z.string().nullish().describe("Text that follows the inserted completion, if the model supports it."),
    echo: z.boolean().nullish().describe("Return the prompt before the completion."),
    best_of: z
      .int()
      .min(1)
      .max(128)
      .nullish()
      .describe(
        "Number of completions to generate, of which the best `n` are returned, if the model server supports it.",
      ),
    logprobs: z
      .int()
      .min(0)
      .max(20)
      .nullish()
      .describe("Number of likely tokens to return log-probabilities for, if the model server supports it."),
  })
  .meta({ id: "CompletionRequest" });

export const textCompletion = z
  .looseObject({
    id: z.string(),
    object: z.literal("text_completion"),
    created: unixSeconds,
    model: z.string(),
    choices: z.array(
      z.looseObject({
        index: z.int(),
        text: z.string(),
        finish_reason: z.enum(["stop", "length", "content_filter"]).nullable(),
      }),
    ),
    usage: usageShape.nullish(),
  })
  .meta({ id: "TextCompletion" });
