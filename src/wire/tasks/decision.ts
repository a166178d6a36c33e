// Schemas of decisions (OpenAI API reference, "Create a decision"). The API of vLLM is the same since version 0.33.
import { z } from "zod";
import { modelId } from "../parts.ts";

/** The body of `POST /decisions`. */
export const decisionRequest = z
  .looseObject({
    model: modelId,
    input: z
      .union([z.string(), z.array(z.looseObject({})).max(131_072)])
      .describe("Subject of the questions: a string, or messages, tool calls and their outputs."),
    questions: z
      .array(z.looseObject({ type: z.string().min(1).max(64), name: z.string().max(1024).optional() }))
      .min(1)
      .max(1024)
      .describe("Questions. Each is a `predicate`, a `choice` or a `score`, with its `instructions`."),
    safety_identifier: z
      .string()
      .max(1024)
      .nullish()
      .describe("Your own id of the end user. Passed on to the model server."),
  })
  .meta({ id: "DecisionRequest" });

export const decision = z
  .looseObject({
    answers: z.array(z.looseObject({ type: z.string(), name: z.string().nullable().optional() })),
    model: z.string(),
    usage: z
      .looseObject({ input_tokens: z.int(), output_tokens: z.int().optional(), total_tokens: z.int().optional() })
      .optional(),
  })
  .meta({ id: "Decision" });
