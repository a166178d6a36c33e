// Legacy text completions on the wire.
import { z } from "zod";
import { modelId, samplingParameters, textOrTokens, unixSeconds, usageShape } from "./wire.ts";

/** POST /completions. */
export const completionRequest = z
  .looseObject({
    model: modelId,
    prompt: textOrTokens.describe("Text, several texts, or token ids."),
    ...samplingParameters,
    suffix: z.string().nullish(),
    echo: z.boolean().nullish(),
    best_of: z.int().min(1).max(128).nullish(),
    logprobs: z.int().min(0).max(20).nullish(),
  })
  .meta({ id: "CompletionRequest" });

export type CompletionRequest = z.infer<typeof completionRequest>;

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
