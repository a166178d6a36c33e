// Shortens a conversation. This file has the prompt for a summary, and builds the item that the summary becomes.
import type { Seal } from "../../../domain/seal.ts";
import type { UserTurn } from "../conversation/conversation.ts";
import { isObject, type Json } from "./json.ts";

/** The user message that replaces the request for a compaction. The model's answer to it becomes the summary. */
export const compactionPrompt = `Sum up our conversation so far, for somebody who goes on with it and sees nothing of it but your summary.

Say, in this order and without an introduction:
1. What I asked for, with every constraint and preference that I stated.
2. What was done, and what came of it: files with their paths, commands and their results, decisions and their reasons.
3. What is known now that took effort to find out, such as errors and their causes.
4. Where the work stands, and what comes next.

Quote names, paths, figures and short pieces of code exactly. Leave out what no longer matters.`;

/**
 * Reports whether the last item of the input requests a compaction. Codex sends such an item if its provider is OpenAI,
 * even with another base URL. It expects exactly one compaction in the answer.
 */
export function isToCompact({ input }: Json): boolean {
  const last: unknown = Array.isArray(input) ? input.at(-1) : undefined;
  return isObject(last) && last["type"] === "compaction_trigger";
}

/** Returns the prompt that replaces the item requesting a compaction. */
export function compactionTurn(place: string): UserTurn {
  return { role: "user", parts: [{ type: "text", text: compactionPrompt }], place };
}

/**
 * Returns the item that replaces the conversation so far. Only this gateway can open the item, and only for the same
 * account.
 */
export function compactionItem(id: string, summary: string, seal: Seal): Json {
  return { type: "compaction", id, encrypted_content: seal.seal(summary) };
}
