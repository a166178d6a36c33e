// Schemas of OpenAI's Responses API: request and response.
import { z } from "zod";
import { modelId, unixSeconds } from "./parts.ts";

const id = z.string().max(256).nullish();

/** A part of a message or of a tool's result. */
const part = z.looseObject({ type: z.string().min(1).max(64), text: z.string().nullish() });

const content = z.union([z.string(), z.array(part)]);

/** An item such as a message, a call or the result of a call. If the item is a message, it may have no type. */
export const responseInputItem = z
  .looseObject({
    type: z.string().min(1).max(64).nullish(),
    id,
    role: z.string().min(1).max(64).nullish(),
    content: content.nullish(),
    call_id: id,
    name: z.string().max(256).nullish(),
    arguments: z.unknown().optional(),
    output: z.unknown().optional(),
  })
  .meta({
    id: "ResponseInputItem",
    description: "One item of the conversation: a message, a tool call, or its output.",
  });

const tool = z.looseObject({
  type: z.string().min(1).max(64),
  name: z.string().min(1).max(256).nullish(),
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullish(),
  strict: z.boolean().nullish(),
});

const textOptions = z.looseObject({
  format: z
    .looseObject({
      type: z.string().min(1).max(64),
      name: z.string().min(1).max(64).nullish(),
      schema: z.record(z.string(), z.unknown()).nullish(),
      strict: z.boolean().nullish(),
    })
    .nullish(),
  verbosity: z.string().max(32).nullish(),
});

/** The body of `POST /responses` (OpenAI API reference, "Create a model response"). Unknown members are kept. */
export const responseRequest = z
  .looseObject({
    model: modelId,
    input: z
      .union([z.string(), z.array(responseInputItem)])
      .describe("A string, or the items of the conversation so far."),
    instructions: z.string().nullish().describe("System message for this response. Later responses do not inherit it."),
    max_output_tokens: z.int().min(1).nullish().describe("Maximum number of tokens to generate, including reasoning."),
    temperature: z.number().min(0).max(2).nullish().describe("Sampling temperature. Default 1."),
    top_p: z
      .number()
      .min(0)
      .max(1)
      .nullish()
      .describe("Nucleus sampling: the smallest set of tokens with this probability mass."),
    top_logprobs: z.int().min(0).max(20).nullish().describe("Number of likely tokens to return at each position."),
    tools: z.array(tool).max(512).nullish().describe("Tools that the model may call."),
    tool_choice: z
      .union([z.string().min(1).max(64), z.looseObject({ type: z.string() })])
      .nullish()
      .describe(
        "`auto` allows calls of tools, `required` demands one, `none` forbids them; an object names the tool to call.",
      ),
    parallel_tool_calls: z.boolean().nullish().describe("True if one answer may contain several calls."),
    text: textOptions.nullish().describe("Format of the answer: `text`, `json_object` or `json_schema`."),
    reasoning: z
      .looseObject({ effort: z.string().max(32).nullish(), summary: z.string().max(32).nullish() })
      .nullish()
      .describe("Reasoning effort, and whether to return a reasoning summary."),
    include: z
      .array(z.string().max(128))
      .max(64)
      .nullish()
      .describe("Additional output in the response, such as `reasoning.encrypted_content`."),
    store: z
      .boolean()
      .nullish()
      .describe(
        "True to store the response, so that it can be read and continued later. Default true. The answer says whether it is stored.",
      ),
    previous_response_id: id.describe(
      "Id of the stored response that this one continues. Not together with `conversation`.",
    ),
    conversation: z
      .union([z.string().max(256), z.looseObject({ id: z.string().max(256) })])
      .nullish()
      .describe(
        "Conversation that this response continues. Its items precede the input. Unless `store` is false, input and output are added to it.",
      ),
    background: z
      .boolean()
      .nullish()
      .describe(
        "Return a `queued` response immediately and run it in the background. Read it by GET, also as a stream, and stop it by `/cancel`. Not together with `store: false`.",
      ),
    stream: z.boolean().nullish().describe("Answer as Server-Sent Events. Default false."),
    truncation: z
      .enum(["auto", "disabled"])
      .nullish()
      .describe("Truncation of conversations that are too long. Not supported: they are always refused."),
    metadata: z.record(z.string(), z.unknown()).nullish().describe("Your own labels."),
    user: z.string().max(1024).nullish().describe("Your own id of the end user. Passed on to the model server."),
    safety_identifier: z.string().max(1024).nullish(),
    prompt_cache_key: z.string().max(1024).nullish(),
    service_tier: z.string().max(64).nullish(),
  })
  .meta({ id: "ResponseRequest" });

const tokens = z.int();

export const responseObject = z
  .looseObject({
    id: z.string(),
    object: z.literal("response"),
    created_at: unixSeconds,
    status: z.enum(["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]),
    model: z.string(),
    output: z.array(z.looseObject({ type: z.string() })),
    error: z.looseObject({ code: z.string(), message: z.string() }).nullable(),
    incomplete_details: z.looseObject({ reason: z.string() }).nullable(),
    usage: z.looseObject({ input_tokens: tokens, output_tokens: tokens, total_tokens: tokens }).nullish(),
  })
  .meta({ id: "Response" });

/** An item of a conversation, in the form in which it is stored. */
export const responseItem = z
  .looseObject({ id: z.string(), type: z.string() })
  .meta({ id: "ResponseItem", description: "A message, a tool call, a tool output, or another type of item." });

export const deletedResponse = z
  .object({ id: z.string(), object: z.literal("response"), deleted: z.literal(true) })
  .meta({ id: "DeletedResponse" });

const { input: compactedInput, ...asInRequest } = responseRequest.shape;

/** The body of `POST /responses/compact`. */
export const compactRequest = z
  .looseObject({
    model: asInRequest.model,
    input: compactedInput.nullish(),
    previous_response_id: id.describe("Id of the stored response whose conversation is compacted."),
    instructions: asInRequest.instructions,
    metadata: asInRequest.metadata,
    user: asInRequest.user,
    safety_identifier: asInRequest.safety_identifier,
  })
  .meta({ id: "CompactRequest" });

export const compaction = z
  .looseObject({
    id: z.string(),
    object: z.literal("response.compaction"),
    created_at: unixSeconds,
    output: z.array(z.looseObject({ type: z.string().optional() })),
  })
  .meta({ id: "Compaction" });

/** One event of a streamed response. */
export const responseEvent = z.looseObject({ type: z.string() }).meta({ id: "ResponseEvent" });
