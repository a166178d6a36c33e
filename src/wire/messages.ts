// Schemas of Anthropic's Messages API: request, token count and answer.
import { z } from "zod";
import { modelId, unknownName } from "./parts.ts";

const cacheControl = z
  .looseObject({ type: z.string().max(64) })
  .nullish()
  .describe(
    "Anthropic's cache breakpoint: the prompt up to here is worth caching. Model servers without prompt caching ignore it.",
  );

/** Describes where the bytes of an image or document come from. */
const source = z.looseObject({ type: z.string().min(1).max(64) });

const textBlock = z.looseObject({ type: z.literal("text"), text: z.string(), cache_control: cacheControl });
const imageBlock = z.looseObject({ type: z.literal("image"), source, cache_control: cacheControl });
const documentBlock = z.looseObject({
  type: z.literal("document"),
  source,
  title: z.string().nullish(),
  context: z.string().nullish(),
  cache_control: cacheControl,
});
const searchResultBlock = z.looseObject({
  type: z.literal("search_result"),
  source: z.string(),
  title: z.string(),
  content: z.array(z.looseObject({ type: z.literal("text"), text: z.string() })),
  cache_control: cacheControl,
});
const thinkingBlock = z.looseObject({
  type: z.literal("thinking"),
  thinking: z.string(),
  signature: z.string().nullish(),
});
const redactedBlock = z.looseObject({ type: z.literal("redacted_thinking"), data: z.string() });
const toolUseBlock = z.looseObject({
  type: z.literal("tool_use"),
  id: z.string().min(1).max(256),
  name: z.string().min(1).max(256),
  input: z.looseObject({}),
  cache_control: cacheControl,
});
const resultContent = z.union([z.string(), z.array(z.looseObject({ type: z.string().min(1).max(64) }))]);
const toolResultBlock = z.looseObject({
  type: z.literal("tool_result"),
  tool_use_id: z.string().min(1).max(256),
  content: resultContent.nullish(),
  is_error: z.boolean().nullish(),
  cache_control: cacheControl,
});
const blockTypes = [
  ...["text", "image", "document", "search_result", "thinking", "redacted_thinking", "tool_use", "tool_result"],
];
const otherBlock = z.looseObject({ type: unknownName(blockTypes) });
const block = z.union([
  textBlock,
  imageBlock,
  documentBlock,
  searchResultBlock,
  thinkingBlock,
  redactedBlock,
  toolUseBlock,
  toolResultBlock,
  otherBlock,
]);
const content = z.union([z.string(), z.array(block)]);

const message = z
  .union([
    z.looseObject({ role: z.literal("user"), content }),
    z.looseObject({ role: z.literal("assistant"), content }),
    z.looseObject({ role: z.literal("system"), content }),
    z.looseObject({ role: unknownName(["user", "assistant", "system"]), content: content.nullish() }),
  ])
  .meta({ id: "MessageParam", description: "One message of the conversation." });

const tool = z.looseObject({
  type: z
    .string()
    .max(64)
    .nullish()
    .describe("`custom` (default), or a tool that Anthropic defines, such as `bash_20250124`."),
  name: z.string().min(1).max(256).optional(),
  description: z.string().nullish(),
  input_schema: z.record(z.string(), z.unknown()).optional().describe("JSON Schema of the tool's input."),
  strict: z.boolean().nullish(),
  defer_loading: z
    .boolean()
    .nullish()
    .describe("True if the tool is withheld from the model until a `tool_reference` in the conversation names it."),
  cache_control: cacheControl,
});

const oneCall = z.boolean().nullish().describe("True if one answer contains at most one call.");
const toolChoice = z.union([
  z.looseObject({ type: z.literal("auto"), disable_parallel_tool_use: oneCall }),
  z.looseObject({ type: z.literal("any"), disable_parallel_tool_use: oneCall }),
  z.looseObject({ type: z.literal("tool"), name: z.string().min(1).max(256), disable_parallel_tool_use: oneCall }),
  z.looseObject({ type: z.literal("none") }),
  z.looseObject({ type: unknownName(["auto", "any", "tool", "none"]) }),
]);

const display = z.string().max(32).nullish().describe("`summarized` or `omitted`.");
const thinking = z.union([
  z.looseObject({
    type: z.literal("enabled"),
    budget_tokens: z.int().min(1024).describe("Maximum number of thinking tokens. They count towards `max_tokens`."),
    display,
  }),
  z.looseObject({ type: z.literal("adaptive"), display }),
  z.looseObject({ type: z.literal("between_tools") }),
  z.looseObject({ type: z.literal("disabled") }),
  z.looseObject({ type: unknownName(["enabled", "adaptive", "between_tools", "disabled"]) }),
]);

const outputFormat = z.union([
  z.looseObject({ type: z.literal("json_schema"), schema: z.record(z.string(), z.unknown()) }),
  z.looseObject({ type: unknownName(["json_schema"]) }),
]);

const prompt = {
  model: modelId,
  messages: z.array(message).min(1).max(100_000).describe("The conversation so far."),
  system: z
    .union([z.string(), z.array(textBlock)])
    .nullish()
    .describe("System prompt."),
  tools: z.array(tool).max(10_000).nullish().describe("Tools that the model may call."),
  tool_choice: toolChoice
    .nullish()
    .describe("`auto` allows calls of tools, `any` demands one, `none` forbids them; `tool` names the tool to call."),
  thinking: thinking.nullish().describe("Extended thinking: on or off, and its budget."),
  output_config: z
    .looseObject({
      effort: z.string().max(32).nullish().describe("`low`, `medium`, `high`, `xhigh` or `max`."),
      format: outputFormat.nullish().describe("Output format: `json_schema` and the schema of the answer."),
    })
    .nullish(),
  output_format: outputFormat.nullish().describe("Older name of `output_config.format`."),
  cache_control: cacheControl,
} as const;

/**
 * The body of `POST /v1/messages`. Unknown members are kept, and reach a model server of the Messages API unchanged.
 */
export const messageRequest = z
  .looseObject({
    ...prompt,
    max_tokens: z.int().min(0).describe("Maximum number of tokens to generate, including thinking."),
    temperature: z.number().min(0).max(1).nullish().describe("Sampling temperature. Default 1."),
    top_p: z.number().min(0).max(1).nullish().describe("Nucleus sampling: the smallest set of tokens with this mass."),
    top_k: z.int().min(0).nullish().describe("Number of most likely tokens to sample from."),
    stop_sequences: z
      .array(z.string().min(1).max(1024))
      .max(128)
      .nullish()
      .describe(
        "Strings at which generation stops. `stop_sequence` names the string, and the text does not include it.",
      ),
    stream: z.boolean().nullish().describe("Answer as Server-Sent Events. Default false."),
    metadata: z
      .looseObject({
        user_id: z.string().max(1024).nullish().describe("Your own id of the end user. Passed on to the model server."),
      })
      .nullish(),
    service_tier: z
      .string()
      .max(64)
      .nullish()
      .describe("`auto` or `standard_only`. Other model servers than Anthropic's ignore it."),
  })
  .meta({ id: "MessageRequest" });

/** The body of `POST /v1/messages/count_tokens`. */
export const messageCountRequest = z
  .looseObject({
    ...prompt,
    max_tokens: z.int().min(0).nullish().describe("Accepted for compatibility, without effect."),
  })
  .meta({ id: "MessageCountRequest" });

const count = z.int().min(0);

export const messageObject = z
  .looseObject({
    id: z.string(),
    type: z.literal("message"),
    role: z.literal("assistant"),
    model: z.string(),
    content: z
      .array(z.looseObject({ type: z.string() }))
      .describe("Content blocks: `text`, `thinking`, `tool_use` and others."),
    stop_reason: z
      .enum([
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "tool_use",
        "pause_turn",
        "refusal",
        "model_context_window_exceeded",
      ])
      .nullable(),
    stop_sequence: z.string().nullable(),
    usage: z.looseObject({
      input_tokens: count.describe("Prompt tokens, without cached tokens."),
      cache_creation_input_tokens: count.nullable(),
      cache_read_input_tokens: count.nullable(),
      output_tokens: count.describe("Tokens of the answer, including thinking."),
    }),
  })
  .meta({ id: "Message" });

/** One event of a streamed answer. */
export const messageEvent = z.looseObject({ type: z.string() }).meta({ id: "MessageEvent" });
