// Checks a whole answer with guardrails. They replace the texts that they mask or block.
import type { Answer } from "../answer.ts";
import { sayWithheld } from "./streamed-texts.ts";
import { checkTexts, type TextGuard } from "./text-guard.ts";
import { answeredTexts, isContainer } from "./text-slots.ts";

export async function guardedAnswer(answer: Answer, guard: TextGuard): Promise<Answer> {
  const parsed = JSON.parse(answer.text) as Record<string, unknown>;
  const isChanged = await checkTexts(answeredTexts(parsed), guard);
  const isBlocked = guard.blockedBy !== undefined;
  if (isBlocked) withhold(parsed);
  // These members are emptied after the check, because they only repeat checked texts in pieces.
  const isLess = dropRepeated(parsed);
  if (!isChanged && !isBlocked && !isLess) return answer;
  const text = JSON.stringify(parsed);
  return { body: text, text, usage: answer.usage };
}

/** Removes tool calls, because a call that was cut off would be invalid, and sets the finish reason. */
function withhold(answer: Record<string, unknown>): void {
  const { choices, content, output } = answer;
  for (const choice of Array.isArray(choices) ? choices : []) {
    if (isContainer(choice) && isContainer(choice["message"])) choice["message"]["tool_calls"] = undefined;
  }
  if (Array.isArray(content)) answer["content"] = content.filter((block) => !isCall(block));
  if (Array.isArray(output)) answer["output"] = output.filter((item) => !isCall(item));
  sayWithheld(answer);
}

function isCall(part: unknown): boolean {
  return isContainer(part) && /(?:tool_use|_call)$/.test(String(part["type"]));
}

const emptied: ReadonlySet<string> = new Set(["logprobs", "words", "token_ids", "tokens"]);

/**
 * Removes the content of members that repeat the text in pieces too small for guardrails. Reports whether there were
 * any such members.
 */
function dropRepeated(value: unknown): boolean {
  if (!isContainer(value)) return false;
  let isLess = false;
  for (const [name, member] of Object.entries(value)) {
    // The input of a tool is the model's own data, so nothing in it is emptied.
    if (name === "input") continue;
    if (!emptied.has(name) || !isContainer(member)) {
      if (dropRepeated(member)) isLess = true;
      continue;
    }
    const isEmpty = Array.isArray(member) && member.length === 0;
    if (isEmpty) continue;
    value[name] = Array.isArray(member) ? [] : null;
    isLess = true;
  }
  return isLess;
}
