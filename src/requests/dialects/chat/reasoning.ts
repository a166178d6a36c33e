// Reads and writes reasoning in messages of chat completions. OpenAI's format has no member for reasoning, so servers
// and clients have added several.
import type { ReasoningPart, ReasoningProof } from "../conversation/conversation.ts";
import { isObject, type Json, listOf, objectOf, textOf } from "./json-value.ts";

/** A piece of reasoning, its proof, or both. The proof is a vendor's signature or the encrypted reasoning. */
export interface ReasoningPiece {
  readonly text: string;
  readonly isSummary: boolean;
  readonly proof?: ReasoningProof | undefined;
}

/**
 * The names that OpenRouter gives to the proofs of different vendors. Proofs of other vendors cannot be sent back in
 * this way. Gemini's proofs are in the calls.
 */
const anthropicFormat = "anthropic-claude-v1";
const openaiFormat = "openai-responses-v1";

/**
 * Returns the text of `reasoning_content` (DeepSeek, llama-server, SGLang) or of `reasoning` (vLLM, Ollama, OpenRouter,
 * Groq, Cerebras). Some servers send the same text in both.
 */
export function plainReasoning(message: Json): string | undefined {
  return textOf(message["reasoning_content"]) ?? textOf(message["reasoning"]);
}

/** Returns the pieces of reasoning in `reasoning_details` (OpenRouter) or `thinking_blocks` (LiteLLM). */
export function reasoningDetails(message: Json): ReasoningPiece[] {
  const { reasoning_details: details, thinking_blocks: blocks } = message;
  if (!Array.isArray(details) && !Array.isArray(blocks)) return [];
  const pieces = listOf(details).flatMap((detail) => pieceOfDetail(objectOf(detail)));
  return pieces.length > 0 ? pieces : listOf(blocks).flatMap((block) => pieceOfBlock(objectOf(block)));
}

/**
 * Returns the reasoning of a whole message. If details contain text, they are used instead of the plain members,
 * because a proof is only valid for its unchanged text.
 */
export function wholeReasoning(message: Json): ReasoningPiece[] {
  const details = reasoningDetails(message);
  const plain = plainReasoning(message);
  if (plain === undefined || details.some(({ text }) => text !== "")) return details;
  return [{ text: plain, isSummary: false }, ...details];
}

/** The methods of `ReplySink` that receive reasoning. */
export interface ReasoningSink {
  block(): void;
  reasoning(text: string, isSummary: boolean): void;
  proof(proof: ReasoningProof): void;
}

export function sendReasoning({ text, isSummary, proof }: ReasoningPiece, sink: ReasoningSink): void {
  if (text !== "") sink.reasoning(text, isSummary);
  // Redacted reasoning is a separate block, and not the proof of the previous block.
  if (proof?.kind === "redacted") sink.block();
  if (proof) sink.proof(proof);
}

/** Returns the entries of `reasoning_details` for a block of reasoning. `index` is the index of the first entry. */
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

/**
 * Returns the members of a message with all of its reasoning. Details are only included if there is a proof and
 * `wantsDetails` is true.
 */
export function reasoningMembers(parts: readonly ReasoningPart[], names: readonly string[], wantsDetails = true): Json {
  const text = parts
    .map((part) => part.text)
    .filter((one) => one !== "")
    .join("\n\n");
  const members: Record<string, unknown> = {};
  if (text !== "") for (const name of names) members[name] = text;
  if (wantsDetails && parts.some(({ proof }) => proof !== undefined)) {
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

/** Returns the text of `thinking`, which at Mistral is a list of parts. */
export function thinkingText(thinking: unknown): string {
  if (typeof thinking === "string") return thinking;
  return listOf(thinking)
    .map((part) => (isObject(part) ? (textOf(part["text"]) ?? "") : ""))
    .join("");
}
