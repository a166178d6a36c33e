// Estimates how many tokens of a request a model reads, if the prompt is a list of items or blocks.
import { estimateTokens, mediaTokens } from "../prompt-tokens.ts";

/** Types of parts whose number of tokens cannot be estimated from the length of their data or URL. */
export const mediaTypes: ReadonlySet<unknown> = new Set([
  ...["input_image", "input_file", "input_audio", "computer_screenshot"],
  ...["image", "document"],
  // Chat and moderation requests use the type `image_url`.
  "image_url",
]);
/**
 * Members that do not count as part of the prompt: names and positions of items, and data that only the model's vendor
 * can read.
 */
export const notShown: ReadonlySet<string> = new Set([
  ...["type", "role", "id", "call_id", "tool_use_id", "status", "cache_control"],
  ...["encrypted_content", "signature", "phase"],
]);

/** Returns the estimated tokens of those members of the body that have these names. */
export function shownTokens(body: Readonly<Record<string, unknown>>, members: readonly string[]): number {
  let tokens = 0;
  for (const name of members) tokens += tokensOf(body[name]);
  return tokens;
}

/** Reports whether a value contains a part whose number of tokens cannot be estimated from its text. */
export function hasMediaPart(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasMediaPart);
  if (typeof value !== "object" || value === null) return false;
  if (mediaTypes.has((value as { type?: unknown }).type)) return true;
  const { content, output } = value as { content?: unknown; output?: unknown };
  return hasMediaPart(content) || hasMediaPart(output);
}

function tokensOf(value: unknown): number {
  if (typeof value === "string") return estimateTokens(Buffer.byteLength(value));
  if (typeof value === "number" || typeof value === "boolean") return 1;
  if (Array.isArray(value)) {
    let tokens = 0;
    for (const item of value) tokens += tokensOf(item);
    return tokens;
  }
  if (typeof value !== "object" || value === null) return 0;
  if (mediaTypes.has((value as { type?: unknown }).type)) return tokensOfMedia(value as { source?: unknown });
  let tokens = 0;
  for (const [name, member] of Object.entries(value)) {
    // The name of a member and its punctuation take one or two tokens. The estimate counts one.
    if (!notShown.has(name)) tokens += 1 + tokensOf(member);
  }
  return tokens;
}

/**
 * Returns the tokens of a document that contains its own text or blocks. Any other media part counts as a fixed number
 * of tokens.
 */
function tokensOfMedia({ source }: { source?: unknown }): number {
  if (typeof source !== "object" || source === null) return mediaTokens;
  const { type, data, content } = source as { type?: unknown; data?: unknown; content?: unknown };
  if (type === "text") return tokensOf(data);
  return type === "content" ? tokensOf(content) : mediaTokens;
}
