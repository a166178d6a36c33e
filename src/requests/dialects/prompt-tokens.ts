// Estimates the tokens of a prompt from its text, for use before a model has counted the tokens.

/**
 * A rough ratio, which depends on the language. Estimates are used until a model server reports usage, and to check
 * reported usage.
 */
const bytesPerToken = 4;
/** Tokens of an image, a recording or a file: the usual count of most models for an image of common size. */
export const mediaTokens = 1_000;
/** Types of message parts whose tokens follow from their text, and types that hold an address or data. */
const textParts: ReadonlySet<unknown> = new Set(["text", "refusal", "thinking"]);
const mediaParts: ReadonlySet<unknown> = new Set(["image_url", "input_audio", "file", "video_url", "audio_url"]);

export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / bytesPerToken);
}

/** Estimates the tokens of everything that the model reads of a request: texts, calls, tools, schemas and media. */
export function estimatePromptTokens(promptMember: string, request: Readonly<Record<string, unknown>>): number {
  let tokens = countTokens(request[promptMember]);
  for (const name of shownAsJson) tokens += countJson(request[name]);
  return tokens;
}

/** Members outside of the prompt that become part of what the model reads, as JSON. */
const shownAsJson = ["tools", "functions", "response_format", "suffix", "documents"] as const;
/** Members of a message or its parts that the model does not read, or that every message has. */
const notShown: ReadonlySet<string> = new Set(["role", "name", "tool_call_id", "type"]);
/** Members that the model reads in every kind of part. */
const alwaysShown: ReadonlySet<string> = new Set(["tool_calls", "function_call", "refusal"]);

/** Reports whether a part is no text, so that its length does not decide its tokens. */
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
 * Counts a message or a part of one. An unknown part may be all text, or an image behind an address, so the larger of
 * both counts is used.
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
