// Schemas of chat completions: request, response and stream chunk.
import { z } from "zod";
import { finishReason, modelId, samplingParameters, unixSeconds, unknownName, usageShape } from "./parts.ts";

const name = z.string().max(256).nullish();

const textPart = z.looseObject({ type: z.literal("text"), text: z.string() });
const imagePart = z.looseObject({ type: z.literal("image_url"), image_url: z.looseObject({ url: z.string() }) });
const audioPart = z.looseObject({
  type: z.literal("input_audio"),
  input_audio: z.looseObject({ data: z.string(), format: z.string() }),
});
const filePart = z.looseObject({ type: z.literal("file"), file: z.looseObject({}) });
const refusalPart = z.looseObject({ type: z.literal("refusal"), refusal: z.string() });
const otherPart = z.looseObject({ type: unknownName(["text", "image_url", "input_audio", "file", "refusal"]) });
const contentPart = z.union([textPart, imagePart, audioPart, filePart, refusalPart, otherPart]);

const content = z.union([z.string(), z.array(contentPart).min(1)]);
/** The content of an assistant's message may be empty, because SDKs send an empty list together with tool calls. */
const anyContent = z.union([z.string(), z.array(contentPart)]);

const toolCall = z.looseObject({
  id: z.string().max(256),
  type: z.string(),
  function: z.looseObject({ name: z.string().min(1).max(256), arguments: z.string() }).optional(),
});

const message = z
  .union([
    z.looseObject({ role: z.literal("system"), content, name }),
    z.looseObject({ role: z.literal("developer"), content, name }),
    z.looseObject({ role: z.literal("user"), content, name }),
    z.looseObject({
      role: z.literal("assistant"),
      content: anyContent.nullish(),
      name,
      tool_calls: z.array(toolCall).max(512).nullish(),
    }),
    z.looseObject({ role: z.literal("tool"), content, tool_call_id: z.string().max(256) }),
    z.looseObject({ role: z.literal("function"), content: content.nullable(), name: z.string().max(256) }),
    z.looseObject({
      role: unknownName(["system", "developer", "user", "assistant", "tool", "function"]),
      content: content.nullish(),
      name,
    }),
  ])
  .meta({ id: "ChatMessage", description: "One message of the conversation." });

const tool = z.looseObject({
  type: z.string(),
  function: z
    .looseObject({
      name: z.string().min(1).max(256),
      description: z.string().nullish(),
      parameters: z.record(z.string(), z.unknown()).nullish(),
    })
    .optional(),
});

const responseFormat = z.union([
  z.looseObject({ type: z.literal("text") }),
  z.looseObject({ type: z.literal("json_object") }),
  z.looseObject({
    type: z.literal("json_schema"),
    json_schema: z
      .looseObject({
        name: z.string().min(1).max(64),
        schema: z.record(z.string(), z.unknown()).optional(),
      })
      .optional(),
  }),
  z.looseObject({ type: unknownName(["text", "json_object", "json_schema"]) }),
]);

/** The body of `POST /chat/completions`. Unknown members are kept, and reach the model server unchanged. */
export const chatRequest = z
  .looseObject({
    model: modelId,
    messages: z.array(message).min(1).describe("The conversation so far."),
    ...samplingParameters,
    best_of: z
      .int()
      .min(1)
      .max(128)
      .nullish()
      .describe("Number of answers to generate, if the model server supports it. The best `n` of them are returned."),
    logprobs: z
      .union([z.boolean(), z.int().min(0).max(20)])
      .nullish()
      .describe(
        "Return log-probabilities of the answer's tokens, if the model server supports it. Some servers take a number.",
      ),
    top_logprobs: z
      .int()
      .min(0)
      .max(20)
      .nullish()
      .describe("Number of likely tokens to return at each position. Needs `logprobs`."),
    tools: z.array(tool).max(512).nullish().describe("Functions that the model may call."),
    tool_choice: z
      .union([z.string().min(1).max(64), z.looseObject({ type: z.string() })])
      .nullish()
      .describe(
        "`auto` allows calls of functions, `required` demands one, `none` forbids them; an object names the function to call. Model servers may accept other values.",
      ),
    parallel_tool_calls: z.boolean().nullish().describe("True if one answer may contain several calls."),
    response_format: responseFormat
      .nullish()
      .describe("`text`, `json_object` or `json_schema`. Model servers may accept other types."),
    reasoning_effort: z
      .string()
      .max(32)
      .nullish()
      .describe("Reasoning effort of a reasoning model, such as `low`. Passed on to the model server."),
    metadata: z
      .record(z.string(), z.unknown())
      .nullish()
      .describe(
        "Your own labels. A stored completion takes at most 16 strings of at most 512 characters, with names of at most 64. Otherwise they are passed on unchanged.",
      ),
    store: z
      .boolean()
      .nullish()
      .describe(
        "True if the gateway stores the completion, for `GET /v1/chat/completions`. Default: the account's setting.",
      ),
  })
  .meta({ id: "ChatCompletionRequest" });

export const chatCompletion = z
  .looseObject({
    id: z.string(),
    object: z.literal("chat.completion"),
    created: unixSeconds,
    model: z.string(),
    choices: z.array(
      z.looseObject({
        index: z.int(),
        message: z.looseObject({ role: z.literal("assistant"), content: z.string().nullable() }),
        finish_reason: finishReason,
      }),
    ),
    usage: usageShape,
  })
  .meta({ id: "ChatCompletion" });

export const chatChunk = z
  .looseObject({
    id: z.string(),
    object: z.literal("chat.completion.chunk"),
    created: unixSeconds,
    model: z.string(),
    choices: z.array(
      z.looseObject({
        index: z.int(),
        delta: z.looseObject({ role: z.literal("assistant").optional(), content: z.string().nullish() }),
        finish_reason: finishReason.nullable(),
      }),
    ),
    usage: usageShape.nullish(),
  })
  .meta({ id: "ChatCompletionChunk" });
