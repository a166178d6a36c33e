// Schemas of moderations (OpenAI API reference, "Create moderation").
import { z } from "zod";
import { modelId } from "../parts.ts";

/** The body of `POST /moderations`. */
export const moderationRequest = z
  .looseObject({
    model: modelId,
    input: z
      .union([
        z.string(),
        z
          .array(z.union([z.string(), z.looseObject({})]))
          .min(1)
          .max(2048),
      ])
      .describe("A string, several strings, or parts of type `text` and `image_url`."),
  })
  .meta({ id: "ModerationRequest" });

export const moderationResult = z
  .looseObject({
    id: z.string().optional(),
    model: z.string().optional(),
    results: z.array(
      z.looseObject({
        flagged: z.boolean(),
        categories: z.looseObject({}).describe("True for each category that applies."),
        category_scores: z.looseObject({}).optional(),
      }),
    ),
  })
  .meta({ id: "ModerationResult" });
