// How many tokens a prompt has, estimated from its text before a model has seen it.

/** Rough and language-dependent, but never zero; only used where an engine reports nothing. */
const bytesPerToken = 4;
/** Tokens of an image, a recording or a file: what most models make of an image of usual size. */
export const mediaTokens = 1_000;
/** Parts of a message whose text tells their tokens, and those that hold an address or data. */
const textParts: ReadonlySet<unknown> = new Set(["text", "refusal", "thinking"]);
const mediaParts: ReadonlySet<unknown> = new Set(["image_url", "input_audio", "file", "video_url", "audio_url"]);

export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / bytesPerToken);
}

/** Prompt tokens estimated from all of a request that a model is shown: texts, calls, tools, schemas, media. */
export function estimatePromptTokens(promptMember: string, request: Readonly<Record<string, unknown>>): number {
  let tokens = countTokens(request[promptMember]);
  for (const name of shownAsJson) tokens += countJson(request[name]);
  return tokens;
}

/** Members beside the prompt that are put into it. */
const shownAsJson = ["tools", "functions", "response_format", "suffix", "documents"] as const;
/** Members of a message or of its parts that are not put into the prompt, or are in it for every message. */
const notShown: ReadonlySet<string> = new Set(["role", "name", "tool_call_id", "type"]);
/** Members that are put into the prompt whatever else the part holds. */
const alwaysShown: ReadonlySet<string> = new Set(["tool_calls", "function_call", "refusal"]);

/** Whether something of it is no text: its tokens are not told by its length. */
export function isMediaPart(part: unknown): boolean {
  return typeof part === "object" && part !== null && !textParts.has((part as { type?: unknown }).type);
}

function countJson(value: unknown): number {
  return value === undefined || value === null ? 0 : estimateTokens(Buffer.byteLength(JSON.stringify(value)));
}

function countTokens(value: unknown): number {
  if (typeof value === "string") return estimateTokens(Buffer.byteLength(value));
  if (typeof value === "number") return 1;
  if (typeof value !== "object" || value === null) return 0;
  if (Array.isArray(value)) {
    let tokens = 0;
    for (let i = 0; i < value.length; i++) tokens += countTokens(value[i]);
    return tokens;
  }
  return countMembers(value as Readonly<Record<string, unknown>>);
}

/** A message, or a part of one. What is not known may be anything: text to its last byte, or an image behind an address. */
function countMembers(value: Readonly<Record<string, unknown>>): number {
  const { type } = value;
  const isMedia = mediaParts.has(type);
  if (typeof type === "string" && !isMedia && !textParts.has(type)) return Math.max(mediaTokens, countJson(value));
  let tokens = isMedia ? mediaTokens : 0;
  for (const name in value) {
    if (name === "content" || name === "text") tokens += countTokens(value[name]);
    else if (alwaysShown.has(name) || !(isMedia || notShown.has(name))) tokens += countJson(value[name]);
  }
  return tokens;
}
