// Seals reasoning that a client stores for the gateway. The seal contains the text, and the vendor's proof, which later
// requests need.

import type { Seal } from "../../../domain/seal.ts";
import type { ReasoningProof } from "../conversation/conversation.ts";
import { isObject, textOf } from "./json.ts";

export interface SealedReasoning {
  text: string;
  proof: ReasoningProof | undefined;
}

export function sealReasoning(seal: Seal, { text, proof }: SealedReasoning): string {
  return seal.seal(JSON.stringify({ text, ...(proof ? { proof } : {}) }));
}

/**
 * Opens reasoning that the gateway sealed. Returns undefined for any other text. Seals for clients of the Messages API
 * contain only the text.
 */
export function openReasoning(seal: Seal, sealed: string): SealedReasoning | undefined {
  const opened = seal.open(sealed);
  if (opened === undefined) return undefined;
  const value = parsed(opened);
  if (!isObject(value)) return { text: opened, proof: undefined };
  const { proof } = value;
  return { text: textOf(value["text"]) ?? "", proof: isObject(proof) ? proofOf(proof) : undefined };
}

function proofOf({ kind, data }: Readonly<Record<string, unknown>>): ReasoningProof | undefined {
  if ((kind !== "signature" && kind !== "redacted" && kind !== "encrypted") || typeof data !== "string")
    return undefined;
  return { kind, data };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
