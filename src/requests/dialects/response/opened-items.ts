// Removes the gateway's seals from the items of a request, for a server that speaks Responses and cannot open them.
import type { Seal } from "../../../domain/seal.ts";
import { isObject, type Json, textOf } from "./json.ts";
import { openReasoning } from "./sealed-reasoning.ts";

/**
 * Returns `input` as JSON if the gateway sealed one of its items; otherwise undefined. Items that others sealed stay.
 */
export function openedInput({ input }: Json, seal: Seal): { input: string } | undefined {
  if (!Array.isArray(input)) return undefined;
  let isChanged = false;
  const items = input.map((item: unknown) => {
    const opened = isObject(item) ? openedItem(item, seal) : undefined;
    isChanged ||= opened !== undefined;
    return opened ?? item;
  });
  return isChanged ? { input: JSON.stringify(items) } : undefined;
}

/** Returns undefined for an item without the gateway's seal. */
function openedItem(item: Json, seal: Seal): Json | undefined {
  const { type, encrypted_content: content, ...members } = item;
  const sealed = textOf(content) || undefined;
  if (sealed === undefined) return undefined;
  if (type === "compaction") {
    const summary = seal.open(sealed);
    return summary === undefined ? undefined : { type: "message", role: "user", content: summary };
  }
  const ours = type === "reasoning" ? openReasoning(seal, sealed) : undefined;
  if (!ours) return undefined;
  // Content that another server encrypted goes back to it unchanged.
  if (ours.proof?.kind === "encrypted") return { type, ...members, encrypted_content: ours.proof.data };
  return { type, ...members, content: [{ type: "reasoning_text", text: ours.text }] };
}
