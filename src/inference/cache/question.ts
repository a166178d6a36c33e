// The last message of a conversation, apart from all that comes before it: what may be compared by its meaning.
import type { DecodedRequest } from "../../requests/decoded-request.ts";

export interface Question {
  readonly text: string;
  /** The member that it stands in, as JSON without it. */
  readonly around: { readonly name: string; readonly text: string };
}

/** Embedding models read no more of a text, and what is longer seldom means the same as another. */
const maxQuestionLength = 8_000;
/** Bytes of a body; no tree is made of a longer one for this, as that takes many times the memory, and everybody waits. */
const maxBodyLength = 256 * 1024;

/** Undefined where the last message is not one of its user's, of text alone. */
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
