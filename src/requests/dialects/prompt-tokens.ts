// Estimates the tokens of a prompt from its text. The estimate is used before a model has counted the tokens.

/**
 * The approximate number of bytes per token, which depends on the language. Estimates are used until a model server
 * reports usage, and also to check the reported usage.
 */
const bytesPerToken = 4;
/**
 * Number of tokens that an image, a recording or a file counts as. For most models, an image of common size has about
 * this number.
 */
export const mediaTokens = 1_000;
/**
 * Types of message parts whose tokens can be estimated from their text. Below them are the types that contain an
 * address or data.
 */
const textParts: ReadonlySet<unknown> = new Set(["text", "refusal", "thinking"]);
const mediaParts: ReadonlySet<unknown> = new Set(["image_url", "input_audio", "file", "video_url", "audio_url"]);

export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / bytesPerToken);
}

/** Estimates the tokens of all parts of a request that the model reads: texts, calls, tools, schemas and media. */
export function estimatePromptTokens(promptMember: string, request: Readonly<Record<string, unknown>>): number {
  let tokens = countTokens(request[promptMember]);
  for (const name of shownAsJson) tokens += countJson(request[name]);
  return tokens;
}

/** Names of members outside of the prompt that the model reads as JSON. */
const shownAsJson = ["tools", "functions", "response_format", "suffix", "documents"] as const;
/** Names of members in a message or its parts that the model does not read, or that every message has. */
const notShown: ReadonlySet<string> = new Set(["role", "name", "tool_call_id", "type"]);
/** Names of members that the model reads in every kind of part. */
const alwaysShown: ReadonlySet<string> = new Set(["tool_calls", "function_call", "refusal"]);

/** Reports whether a part is not text, so that its length does not determine its tokens. */
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

/**
 * Counts the tokens of a message or of one of its parts. An unknown part may be only text, or an image behind an
 * address. The larger of both counts is used.
 */
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
