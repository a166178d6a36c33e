// Removes the gateway's seals and other vendors' reasoning from the items of a request. The request goes to a server
// that knows all of the Responses API.
import type { Seal } from "../../../domain/seal.ts";
import { isObject, type Json, objectsOf, textOf } from "./json.ts";
import { openReasoning } from "./sealed-reasoning.ts";

/**
 * Returns `input` as JSON if the gateway sealed an item, or if an item is reasoning that OpenAI would refuse. Otherwise
 * returns undefined. OpenAI refuses the text of reasoning (`array_above_max_length`). Without this function, every
 * later turn of a conversation that comes from another model would fail.
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

/** Returns the same item if the server may get it unchanged. Returns undefined if the item must be left out. */
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
  // Content that another server encrypted goes back unchanged to that server.
  return ours.proof?.kind === "encrypted" ? { type, ...members, encrypted_content: ours.proof.data } : undefined;
}
