// How a message of chat completions has its reasoning: OpenAI's format has none, so servers and clients each brought theirs.
import type { ReasoningPart, ReasoningProof } from "../conversation/conversation.ts";
import { isObject, type Json, listOf, objectOf, textOf } from "./json-value.ts";

/** A part of what was thought, or a proof of what was said of it so far, or both. */
export interface ReasoningPiece {
  readonly text: string;
  readonly isSummary: boolean;
  readonly proof?: ReasoningProof | undefined;
}

/** OpenRouter's names of whose proofs they are. Others (Gemini's belong to calls) could not be told back as they are. */
const anthropicFormat = "anthropic-claude-v1";
const openaiFormat = "openai-responses-v1";

/**
 * The text of `reasoning_content` (DeepSeek, llama-server, SGLang) or `reasoning` (vLLM, Ollama, OpenRouter, Groq,
 * Cerebras); some send both, with the same text.
 */
export function plainReasoning(message: Json): string | undefined {
  return textOf(message["reasoning_content"]) ?? textOf(message["reasoning"]);
}

/** What `reasoning_details` (OpenRouter) or `thinking_blocks` (LiteLLM) say. */
export function reasoningDetails(message: Json): ReasoningPiece[] {
  const { reasoning_details: details, thinking_blocks: blocks } = message;
  if (!Array.isArray(details) && !Array.isArray(blocks)) return [];
  const pieces = listOf(details).flatMap((detail) => pieceOfDetail(objectOf(detail)));
  return pieces.length > 0 ? pieces : listOf(blocks).flatMap((block) => pieceOfBlock(objectOf(block)));
}

/** The reasoning of a whole message: detailed, where that has the text, since proofs hold for a text as it was. */
export function wholeReasoning(message: Json): ReasoningPiece[] {
  const details = reasoningDetails(message);
  const plain = plainReasoning(message);
  if (plain === undefined || details.some(({ text }) => text !== "")) return details;
  return [{ text: plain, isSummary: false }, ...details];
}

/** The sinks' calls for a piece. */
export interface ReasoningSink {
  block(): void;
  reasoning(text: string, isSummary: boolean): void;
  proof(proof: ReasoningProof): void;
}

export function tellReasoning({ text, isSummary, proof }: ReasoningPiece, sink: ReasoningSink): void {
  if (text !== "") sink.reasoning(text, isSummary);
  // What was redacted is a thought of its own, and no proof of the one before it.
  if (proof?.kind === "redacted") sink.block();
  if (proof) sink.proof(proof);
}

/** The entries of `reasoning_details` for a thought, the first of which gets this index. */
export function detailsOf({ text, isSummary, proof }: ReasoningPiece, index: number): Json[] {
  const format = proof?.kind === "encrypted" ? openaiFormat : proof ? anthropicFormat : "unknown";
  const entries: Json[] = [];
  const add = (entry: Json) => entries.push({ ...entry, format, index: index + entries.length });
  if (proof?.kind === "signature") add({ type: "reasoning.text", text, signature: proof.data });
  else if (text !== "")
    add(isSummary ? { type: "reasoning.summary", summary: text } : { type: "reasoning.text", text });
  if (proof && proof.kind !== "signature") add({ type: "reasoning.encrypted", data: proof.data });
  return entries;
}

/** The members of a message for all of its thoughts; the details only where there is a proof, for which they are made. */
export function reasoningMembers(parts: readonly ReasoningPart[], names: readonly string[]): Json {
  const text = parts
    .map((part) => part.text)
    .filter((one) => one !== "")
    .join("\n\n");
  const members: Record<string, unknown> = {};
  if (text !== "") for (const name of names) members[name] = text;
  if (parts.some(({ proof }) => proof !== undefined)) {
    const details: Json[] = [];
    for (const part of parts) for (const entry of detailsOf(part, details.length)) details.push(entry);
    members["reasoning_details"] = details;
  }
  return members;
}

function pieceOfDetail({ type, text, summary, data, signature, format }: Json): ReasoningPiece[] {
  if (type === "reasoning.summary") return [{ text: textOf(summary) ?? "", isSummary: true }];
  const isKnown = format === undefined || format === null || format === "unknown";
  if (type === "reasoning.text") {
    const signed = isKnown || format === anthropicFormat ? textOf(signature) : undefined;
    return [
      { text: textOf(text) ?? "", isSummary: false, ...(signed ? { proof: { kind: "signature", data: signed } } : {}) },
    ];
  }
  const encrypted = type === "reasoning.encrypted" ? textOf(data) : undefined;
  if (encrypted === undefined || (format !== anthropicFormat && format !== openaiFormat)) return [];
  const kind = format === anthropicFormat ? "redacted" : "encrypted";
  return [{ text: "", isSummary: false, proof: { kind, data: encrypted } }];
}

function pieceOfBlock({ type, thinking, signature, data }: Json): ReasoningPiece[] {
  const redacted = type === "redacted_thinking" ? textOf(data) : undefined;
  if (redacted !== undefined) return [{ text: "", isSummary: false, proof: { kind: "redacted", data: redacted } }];
  if (type !== "thinking") return [];
  const signed = textOf(signature);
  const proof: ReasoningProof | undefined = signed === undefined ? undefined : { kind: "signature", data: signed };
  return [{ text: thinkingText(thinking), isSummary: false, proof }];
}

/** Mistral's `thinking` is a list of parts. */
export function thinkingText(thinking: unknown): string {
  if (typeof thinking === "string") return thinking;
  return listOf(thinking)
    .map((part) => (isObject(part) ? (textOf(part["text"]) ?? "") : ""))
    .join("");
}
