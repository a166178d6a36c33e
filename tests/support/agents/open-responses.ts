// What Open Responses promises of responses and of the events of a stream, written down from its OpenAPI document.
import { z } from "zod";

/**
 * The shapes of version 2026-04-24 (openresponses.org/openapi/2026-04-24/openapi.json, `ResponseResource` and what it leads
 * to, the events of `POST /responses`, `CompactResource`, `WebSocketErrorEvent`): every required member, every type and every
 * list of values, in words of our own. As in the document, members that it does not know are nobody's fault.
 */
const text = z.string();
const whole = z.int();
const status = z.enum(["in_progress", "completed", "incomplete"]);
const nullableText = text.nullable();

const likelyToken = z.looseObject({ token: text, logprob: z.number(), bytes: z.array(whole) });
const logprobs = z.array(likelyToken.extend({ top_logprobs: z.array(likelyToken) }));
const citation = z.looseObject({
  type: z.literal("url_citation"),
  url: text,
  start_index: whole,
  end_index: whole,
  title: text,
});

const inputText = z.looseObject({ type: z.literal("input_text"), text });
const inputImage = z.looseObject({
  type: z.literal("input_image"),
  image_url: nullableText,
  detail: z.enum(["low", "high", "auto"]),
});
const inputFile = z.looseObject({
  type: z.literal("input_file"),
  filename: text.optional(),
  file_url: text.optional(),
});
const part = z.discriminatedUnion("type", [
  inputText,
  inputImage,
  inputFile,
  z.looseObject({
    type: z.literal("output_text"),
    text,
    annotations: z.array(citation),
    logprobs: logprobs.optional(),
  }),
  z.looseObject({ type: z.enum(["text", "summary_text", "reasoning_text"]), text }),
  z.looseObject({ type: z.literal("refusal"), refusal: text }),
]);
const video = z.looseObject({ type: z.literal("input_video"), video_url: text });

const item = z.discriminatedUnion("type", [
  z.looseObject({
    type: z.literal("message"),
    id: text,
    status,
    role: z.enum(["user", "assistant", "system", "developer"]),
    content: z.array(z.union([part, video])),
    phase: z.enum(["commentary", "final_answer"]).optional(),
  }),
  z.looseObject({ type: z.literal("function_call"), id: text, call_id: text, name: text, arguments: text, status }),
  z.looseObject({
    type: z.literal("function_call_output"),
    id: text,
    call_id: text,
    output: z.union([text, z.array(z.discriminatedUnion("type", [inputText, inputImage, inputFile]))]),
    status,
  }),
  z.looseObject({
    type: z.literal("reasoning"),
    id: text,
    summary: z.array(part),
    content: z.array(part).optional(),
    encrypted_content: text.optional(),
  }),
  z.looseObject({ type: z.literal("compaction"), id: text, encrypted_content: text, created_by: text.optional() }),
]);

const functionTool = z.looseObject({
  type: z.literal("function"),
  name: text,
  description: nullableText,
  parameters: z.record(text, z.unknown()).nullable(),
  strict: z.boolean().nullable(),
});
const choiceMode = z.enum(["none", "auto", "required"]);
const functionChoice = z.looseObject({ type: z.literal("function"), name: text.optional() });
const toolChoice = z.union([
  choiceMode,
  functionChoice,
  z.looseObject({ type: z.literal("allowed_tools"), tools: z.array(functionChoice), mode: choiceMode }),
]);

const textField = z.looseObject({
  format: z.discriminatedUnion("type", [
    z.looseObject({ type: z.enum(["text", "json_object"]) }),
    z.looseObject({
      type: z.literal("json_schema"),
      name: text,
      description: nullableText,
      // The document has `null` alone here, which no schema is: what it means is that the member is there.
      schema: z.unknown().refine((schema) => schema !== undefined),
      strict: z.boolean(),
    }),
  ]),
  verbosity: z.enum(["low", "medium", "high"]).optional(),
});

const usage = z.looseObject({
  input_tokens: whole,
  output_tokens: whole,
  total_tokens: whole,
  input_tokens_details: z.looseObject({ cached_tokens: whole }),
  output_tokens_details: z.looseObject({ reasoning_tokens: whole }),
});

const response = z.looseObject({
  id: text,
  object: z.literal("response"),
  created_at: whole,
  completed_at: whole.nullable(),
  status: text,
  incomplete_details: z.looseObject({ reason: text }).nullable(),
  model: text,
  previous_response_id: nullableText,
  instructions: nullableText,
  output: z.array(item),
  error: z.looseObject({ code: text, message: text }).nullable(),
  tools: z.array(functionTool),
  tool_choice: toolChoice,
  truncation: z.enum(["auto", "disabled"]),
  parallel_tool_calls: z.boolean(),
  text: textField,
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: whole,
  temperature: z.number(),
  reasoning: z
    .looseObject({
      effort: z.enum(["none", "low", "medium", "high", "xhigh"]).nullable(),
      summary: z.enum(["concise", "detailed", "auto"]).nullable(),
    })
    .nullable(),
  usage: usage.nullable(),
  max_output_tokens: whole.nullable(),
  max_tool_calls: whole.nullable(),
  store: z.boolean(),
  background: z.boolean(),
  service_tier: text,
  metadata: z.unknown().refine((metadata) => metadata !== undefined),
  safety_identifier: nullableText,
  prompt_cache_key: nullableText,
});

const compaction = z.looseObject({
  id: text,
  object: z.literal("response.compaction"),
  output: z.array(item),
  created_at: whole,
  usage,
});

function event<Shape extends z.ZodRawShape>(type: string, shape: Shape) {
  return z.looseObject({ type: z.literal(type), sequence_number: whole, ...shape });
}
const ofItem = { item_id: text, output_index: whole };
const inContent = { ...ofItem, content_index: whole };
const inSummary = { ...ofItem, summary_index: whole };
const padding = { obfuscation: text.optional() };

const events = [
  ...["created", "queued", "in_progress", "completed", "failed", "incomplete"].map((name) =>
    event(`response.${name}`, { response }),
  ),
  ...["added", "done"].flatMap((when) => [
    event(`response.output_item.${when}`, { output_index: whole, item: item.nullable() }),
    event(`response.reasoning_summary_part.${when}`, { ...inSummary, part }),
    event(`response.content_part.${when}`, { ...inContent, part }),
  ]),
  event("response.output_text.delta", { ...inContent, delta: text, logprobs: logprobs.optional(), ...padding }),
  event("response.output_text.done", { ...inContent, text, logprobs: logprobs.optional() }),
  event("response.output_text.annotation.added", {
    ...inContent,
    annotation_index: whole,
    annotation: citation.nullable(),
  }),
  event("response.refusal.delta", { ...inContent, delta: text }),
  event("response.refusal.done", { ...inContent, refusal: text }),
  event("response.reasoning.delta", { ...inContent, delta: text, ...padding }),
  event("response.reasoning.done", { ...inContent, text }),
  event("response.reasoning_summary_text.delta", { ...inSummary, delta: text, ...padding }),
  event("response.reasoning_summary_text.done", { ...inSummary, text }),
  event("response.function_call_arguments.delta", { ...ofItem, delta: text, ...padding }),
  event("response.function_call_arguments.done", { ...ofItem, arguments: text }),
  event("error", {
    error: z.looseObject({
      type: text,
      code: nullableText,
      message: text,
      param: nullableText,
      headers: z.record(text, text).optional(),
    }),
  }),
];
const eventsByType = new Map(events.map((schema) => [schema.shape.type.value, schema]));

const socketError = z.looseObject({
  type: z.literal("error"),
  status: whole,
  error: z.looseObject({ type: text.optional(), code: text, message: text, param: nullableText.optional() }),
});

/**
 * OpenAI's clients, which are older, know the thoughts of a model by other names of their events than the document has; and
 * they go first (the SDK, Codex).
 */
const otherNames: ReadonlyMap<unknown, string> = new Map([
  ["response.reasoning_text.delta", "response.reasoning.delta"],
  ["response.reasoning_text.done", "response.reasoning.done"],
]);

/** Every way in which the value is not what the document says, as `path: what`. */
export const responseFaults = (value: unknown) => faults(response, withoutCustom(value));
export const compactionFaults = (value: unknown) => faults(compaction, value);
export const socketErrorFaults = (value: unknown) => faults(socketError, value);

export function eventFaults(value: Readonly<Record<string, unknown>>): string[] {
  const { type, item: reported, response: held } = value;
  if (isCustom(reported) || String(type).startsWith("response.custom_tool_call_input.")) return [];
  const name = otherNames.get(type) ?? String(type);
  const schema = eventsByType.get(name);
  if (!schema) return [`type: there is no event \`${name}\``];
  return faults(schema, { ...value, type: name, ...(held === undefined ? {} : { response: withoutCustom(held) }) });
}

function faults(schema: z.ZodType, value: unknown): string[] {
  const { error } = schema.safeParse(value);
  return (error?.issues ?? []).map(({ path, message }) => `${path.join(".")}: ${message}`);
}

/** A response without custom tools and their calls, which OpenAI's API has and the document does not know. */
function withoutCustom(value: unknown): unknown {
  const { tools, output, ...members } = value as { tools?: unknown; output?: unknown };
  const known = (list: unknown) => (Array.isArray(list) ? list.filter((one) => !isCustom(one)) : list);
  return { ...members, tools: known(tools), output: known(output) };
}

function isCustom(value: unknown): boolean {
  const { type } = (value ?? {}) as { type?: unknown };
  return type === "custom" || type === "custom_tool_call";
}
