// A whole answer on its way through guardrails: in the place of what they find stands what may be passed on.
import type { Answer } from "../answer.ts";
import { sayWithheld } from "./streamed-texts.ts";
import { guardedWhole, type TextGuard } from "./text-guard.ts";
import { answeredTexts, isHolder } from "./text-slots.ts";

export async function guardedAnswer(answer: Answer, guard: TextGuard): Promise<Answer> {
  const parsed = JSON.parse(answer.text) as Record<string, unknown>;
  const slots = answeredTexts(parsed);
  const passed = slots.map(({ text, isJson }) => guardedWhole(guard, text, isJson));
  const isAsked = guard.asks && guard.blockedBy === undefined && passed.length > 0;
  const given = isAsked ? await guard.ask(passed.map((text) => ({ text, before: "" }))) : passed;
  let isChanged = false;
  slots.forEach(({ text, put }, index) => {
    const own = given[index] ?? "";
    if (own === text) return;
    isChanged = true;
    put(own);
  });
  if (guard.blockedBy !== undefined) withhold(parsed);
  else if (!isChanged) return answer;
  dropLogprobs(parsed);
  const text = JSON.stringify(parsed);
  return { body: text, text, usage: answer.usage };
}

/** A call that was cut off in the middle is none. */
function withhold(answer: Record<string, unknown>): void {
  const { choices, content, output } = answer;
  for (const choice of Array.isArray(choices) ? choices : []) {
    if (isHolder(choice) && isHolder(choice["message"])) choice["message"]["tool_calls"] = undefined;
  }
  if (Array.isArray(content)) answer["content"] = content.filter((block) => !isCall(block));
  if (Array.isArray(output)) answer["output"] = output.filter((item) => !isCall(item));
  sayWithheld(answer);
}

function isCall(part: unknown): boolean {
  return isHolder(part) && /(?:tool_use|_call)$/.test(String(part["type"]));
}

/** They tell the text once more. */
function dropLogprobs(value: unknown): void {
  if (!isHolder(value)) return;
  for (const [name, member] of Object.entries(value)) {
    if (name === "logprobs") value[name] = Array.isArray(member) ? [] : null;
    else dropLogprobs(member);
  }
}
