// Separates the last message of a conversation, which may be compared by its meaning, from everything before it.
import type { DecodedRequest } from "../../requests/decoded-request.ts";

export interface Question {
  readonly text: string;
  /** The member that contains the message, as JSON without the message. */
  readonly around: { readonly name: string; readonly text: string };
}

/** Maximum length of a question. Embedding models read no more, and longer texts seldom have the same meaning. */
const maxQuestionLength = 8_000;
/**
 * Maximum bytes of a body that is parsed for this, because a parsed tree takes many times the memory and blocks other
 * requests.
 */
const maxBodyLength = 256 * 1024;

/** Returns the question; undefined if the last message is not a user's message of text alone. */
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
