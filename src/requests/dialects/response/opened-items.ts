// Removes the gateway's seals and other vendors' reasoning from the items of a request, for a server that speaks
// Responses in full.
import type { Seal } from "../../../domain/seal.ts";
import { isObject, type Json, objectsOf, textOf } from "./json.ts";
import { openReasoning } from "./sealed-reasoning.ts";

/**
 * Returns `input` as JSON if an item is sealed by the gateway, or is reasoning that OpenAI would refuse; otherwise
 * undefined. OpenAI refuses the text of reasoning (`array_above_max_length`), so a conversation that comes from another
 * model would fail on every later turn.
 */
export function openedInput({ input }: Json, seal: Seal, isOpenai: boolean): { input: string } | undefined {
  if (!Array.isArray(input)) return undefined;
  let isChanged = false;
  const items = input.flatMap((item: unknown) => {
    const opened = isObject(item) ? openedItem(item, seal, isOpenai) : item;
    isChanged ||= opened !== item;
    return opened === undefined ? [] : [opened];
  });
  return isChanged ? { input: JSON.stringify(items) } : undefined;
}

/** Returns the item itself if the server may get it unchanged, and undefined for an item to leave out. */
function openedItem(item: Json, seal: Seal, isOpenai: boolean): Json | undefined {
  const { type, encrypted_content, ...members } = item;
  const sealed = textOf(encrypted_content) || undefined;
  if (type === "compaction" && sealed !== undefined) {
    const summary = seal.open(sealed);
    return summary === undefined ? item : { type: "message", role: "user", content: summary };
  }
  if (type !== "reasoning") return item;
  if (sealed === undefined) return isOpenai && objectsOf(members["content"]).length > 0 ? undefined : item;
  const ours = openReasoning(seal, sealed);
  if (!ours) return item;
  // Content from another server, encrypted there, returns to the same server unchanged.
  return ours.proof?.kind === "encrypted" ? { type, ...members, encrypted_content: ours.proof.data } : undefined;
}
