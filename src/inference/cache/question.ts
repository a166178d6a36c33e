// Splits a conversation into its last message, which is compared by meaning, and everything else, which must be equal.
import type { DecodedRequest } from "../../requests/decoded-request.ts";

export interface Question {
  readonly text: string;
  /** The member that contained the message: its name, and its JSON without that message. */
  readonly around: { readonly name: string; readonly text: string };
}

/**
 * Maximum characters of the last message. Embedding models read no more, and longer texts rarely have equal
 * meanings.
 */
const maxQuestionLength = 8_000;
/** Maximum bytes of a body that is parsed. Parsing a longer body would use much memory and block other requests. */
const maxBodyLength = 256 * 1024;

/** Splits the request. Returns undefined unless the last message is from a user and contains only text. */
export function questionOf(request: DecodedRequest): Question | undefined {
  const { dialect, bodyBytes } = request;
  if (!dialect.format || bodyBytes > maxBodyLength) return undefined;
  const name = dialect.promptMember;
  const prompt = request.body[name];
  if (typeof prompt === "string") return question(name, prompt, null);
  if (!Array.isArray(prompt)) return undefined;
  const last: unknown = prompt.at(-1);
  if (typeof last !== "object" || last === null) return undefined;
  const { content, ...rest } = last as Record<string, unknown>;
  if (rest["role"] !== "user") return undefined;
  const before = [...prompt.slice(0, -1), rest];
  if (typeof content === "string") return question(name, content, before);
  const part: unknown = Array.isArray(content) && content.length === 1 ? content[0] : undefined;
  if (typeof part !== "object" || part === null) return undefined;
  const { text, ...ofPart } = part as Record<string, unknown>;
  const isText = ofPart["type"] === "text" || ofPart["type"] === "input_text";
  return isText && typeof text === "string" ? question(name, text, [...before, ofPart]) : undefined;
}

function question(name: string, text: string, around: unknown): Question | undefined {
  const isUsual = text.trim() !== "" && text.length <= maxQuestionLength;
  return isUsual ? { text, around: { name, text: JSON.stringify(around) } } : undefined;
}
