// How a conversation is made short: what a model is asked for, and the item that its summary becomes.
import type { Seal } from "../../../domain/seal.ts";
import type { UserTurn } from "../conversation/conversation.ts";
import { isObject, type Json } from "./json.ts";

/** What the model is asked at the end of the conversation. */
export const compactionPrompt = `Sum up our conversation so far, for somebody who goes on with it and sees nothing of it but your summary.

Say, in this order and without an introduction:
1. What I asked for, with every constraint and preference that I stated.
2. What was done, and what came of it: files with their paths, commands and their results, decisions and their reasons.
3. What is known now that took effort to find out, such as errors and their causes.
4. Where the work stands, and what comes next.

Quote names, paths, figures and short pieces of code exactly. Leave out what no longer matters.`;

/**
 * Whether the answer is to be a compaction: the last item of the input says so. Codex sends such a one where its provider is
 * OpenAI, also with a base URL of its own, and takes exactly one compaction for an answer.
 */
export function isToCompact({ input }: Json): boolean {
  const last: unknown = Array.isArray(input) ? input.at(-1) : undefined;
  return isObject(last) && last["type"] === "compaction_trigger";
}

/** The question that stands in the place of that item. */
export function compactionTurn(place: string): UserTurn {
  return { role: "user", parts: [{ type: "text", text: compactionPrompt }], place };
}

/** The item that stands for all that was said before it. Only this gateway opens it, for the same account. */
export function compactionItem(id: string, summary: string, seal: Seal): Json {
  return { type: "compaction", id, encrypted_content: seal.seal(summary) };
}
