// How many tokens a model is shown of a request whose prompt is a list of items or blocks, estimated from their text.
import { estimateTokens, mediaTokens } from "../prompt-tokens.ts";

/** Types of parts whose data or address says nothing of their tokens. */
export const mediaTypes: ReadonlySet<unknown> = new Set([
  ...["input_image", "input_file", "input_audio", "computer_screenshot"],
  ...["image", "document"],
  // The name that chats and moderations have for it.
  "image_url",
]);
/** Members that name and order, and are not put into the prompt; and what only the maker of an answer can read. */
export const notShown: ReadonlySet<string> = new Set([
  ...["type", "role", "id", "call_id", "tool_use_id", "status", "cache_control"],
  ...["encrypted_content", "signature", "phase"],
]);

/** The tokens of the members by these names. */
export function shownTokens(body: Readonly<Record<string, unknown>>, members: readonly string[]): number {
  let tokens = 0;
  for (const name of members) tokens += tokensOf(body[name]);
  return tokens;
}

/** Whether there is anything of which the text does not tell the tokens. */
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
    // A name and its punctuation are a token or two.
    if (!notShown.has(name)) tokens += 1 + tokensOf(member);
  }
  return tokens;
}

/** A document may be its text, or blocks. */
function tokensOfMedia({ source }: { source?: unknown }): number {
  if (typeof source !== "object" || source === null) return mediaTokens;
  const { type, data, content } = source as { type?: unknown; data?: unknown; content?: unknown };
  if (type === "text") return tokensOf(data);
  return type === "content" ? tokensOf(content) : mediaTokens;
}
