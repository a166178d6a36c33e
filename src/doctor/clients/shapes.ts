// The shapes of API answers, exactly as the types of the OpenAI SDKs declare them.
import { z } from "zod";

const count = z.int().min(0);
const usage = z
  .looseObject({ prompt_tokens: count, completion_tokens: count, total_tokens: count })
  .refine((all) => all.total_tokens === all.prompt_tokens + all.completion_tokens, {
    message: "total_tokens is not the sum of prompt_tokens and completion_tokens",
  });
const finishReason = z.enum(["stop", "length", "tool_calls", "content_filter", "function_call"]);
const seconds = z.int().min(1);
const id = z.string().min(1);

const toolCall = z.looseObject({
  id,
  type: z.literal("function"),
  function: z.looseObject({ name: z.string().min(1), arguments: z.string() }),
});

export const chatCompletion = z.looseObject({
  id,
  object: z.literal("chat.completion"),
  created: seconds,
  model: id,
  choices: z
    .array(
      z.looseObject({
        index: count,
        message: z.looseObject({
          role: z.literal("assistant"),
          content: z.string().nullable(),
          tool_calls: z.array(toolCall).min(1).optional(),
        }),
        finish_reason: finishReason,
      }),
    )
    .length(1),
  usage,
});

export const chatChunk = z.looseObject({
  id,
  object: z.literal("chat.completion.chunk"),
  created: seconds,
  model: id,
  choices: z.array(
    z.looseObject({
      index: count,
      delta: z.looseObject({
        role: z.literal("assistant").optional(),
        content: z.string().nullish(),
      }),
      finish_reason: finishReason.nullable(),
    }),
  ),
  usage: usage.nullish(),
});

export const textCompletion = z.looseObject({
  id,
  object: z.literal("text_completion"),
  created: seconds,
  model: id,
  choices: z
    .array(
      z.looseObject({ index: count, text: z.string(), finish_reason: z.enum(["stop", "length", "content_filter"]) }),
    )
    .length(1),
  usage,
});

const embedding = <Vector extends z.ZodType>(vector: Vector) =>
  z.looseObject({
    object: z.literal("list"),
    data: z.array(z.looseObject({ object: z.literal("embedding"), index: count, embedding: vector })).length(2),
    model: id,
    usage: z.looseObject({ prompt_tokens: count, total_tokens: count }),
  });
export const floatEmbeddings = embedding(z.array(z.number()).min(1));
export const base64Embeddings = embedding(z.base64().min(1));

export const model = z.looseObject({
  id,
  object: z.literal("model"),
  created: z.int(),
  owned_by: z.string(),
  capabilities: z
    .looseObject({ chat: z.boolean(), completion: z.boolean(), embeddings: z.boolean() })
    .partial()
    .optional(),
  alias_of: z.string().optional(),
});
export type Model = z.infer<typeof model>;
export const modelList = z.looseObject({ object: z.literal("list"), data: z.array(model) });

/** Other members are a fault, because applications might come to rely on them. */
export const errorBody = z.strictObject({
  error: z.strictObject({
    message: z.string().min(1),
    type: z.string().min(1),
    param: z.string().optional(),
    code: z.string().min(1),
  }),
});

const maxFaults = 3;

/**
 * Returns why a value does not have the shape, such as `choices[0].message.role: Invalid input: …`. Empty if the value
 * has the shape.
 */
export function faultsOf(shape: z.ZodType, value: unknown): string[] {
  const result = shape.safeParse(value);
  if (result.success) return [];
  return result.error.issues.slice(0, maxFaults).map(({ path, message }) => {
    const pathText = path.map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`)).join("");
    return pathText === "" ? message : `${pathText.replace(/^\./, "")}: ${message}`;
  });
}
