// Reads messages, choices and their pieces for traces from requests and answers in OpenAI's formats.
import { maxSaid, type ReportedAnswer, type Said, type SaidCall, type SaidPart, type SaidPiece } from "../said.ts";

/** Maximum number of choices whose finish reasons are read. */
const maxChoices = 128;
const maxNameLength = 256;

/** Returns the messages of a conversation, beginning with the last one. */
export function* messagesSaid(messages: unknown): Iterable<Said> {
  for (const message of lastFirst(messages)) yield saidIn(message);
}

/** Returns the prompt. If there are several prompts, returns the last one first. Lists of tokens are left out. */
export function* textsSaid(prompt: unknown): Iterable<Said> {
  for (const text of lastFirst(typeof prompt === "string" ? [prompt] : prompt)) {
    if (typeof text === "string") yield { role: "user", parts: [{ text }], calls: [] };
  }
}

/** Returns the messages of a whole answer's choices. */
export function choicesSaid(answer: unknown): readonly Said[] {
  return listOf(memberOf(answer, "choices")).map((choice) => {
    const said = saidIn(memberOf(choice, "message") ?? { content: memberOf(choice, "text") });
    return { ...said, role: "assistant", reason: memberOf(choice, "finish_reason") };
  });
}

/** Returns the piece that a chunk adds to each choice. The number of choices is not limited. */
export function piecesSaid(chunk: unknown): readonly SaidPiece[] {
  return itemsOf(memberOf(chunk, "choices")).map((choice) => {
    const delta = memberOf(choice, "delta");
    const calls = itemsOf(memberOf(delta, "tool_calls")).map((call) => {
      const called = memberOf(call, "function");
      const [name, text] = [memberOf(called, "name"), memberOf(called, "arguments")];
      return { index: memberOf(call, "index"), id: memberOf(call, "id"), name, text };
    });
    const text = memberOf(delta, "content") ?? memberOf(choice, "text");
    return { index: memberOf(choice, "index"), text, calls, reason: memberOf(choice, "finish_reason") };
  });
}

/** Adds to `reported` the facts that `value` contains. `value` is a chunk or a whole answer. */
export function readReported(reported: ReportedAnswer, value: unknown): void {
  const id = textOf(value, "id");
  const model = textOf(value, "model");
  if (id !== undefined) reported.id = id;
  if (model !== undefined) reported.model = model;
  for (const [position, choice] of itemsOf(memberOf(value, "choices")).slice(0, maxChoices).entries()) {
    const reason = textOf(choice, "finish_reason");
    const index = memberOf(choice, "index");
    if (reason !== undefined && reported.finishReasons.size < maxChoices) {
      reported.finishReasons.set(typeof index === "number" ? index : position, reason);
    }
  }
  const usage = memberOf(value, "usage");
  const cached = memberOf(memberOf(usage, "prompt_tokens_details"), "cached_tokens");
  const reasoning = memberOf(memberOf(usage, "completion_tokens_details"), "reasoning_tokens");
  if (typeof cached === "number") reported.cachedTokens = cached;
  if (typeof reasoning === "number") reported.reasoningTokens = reasoning;
}

function saidIn(message: unknown): Said {
  const role = memberOf(message, "role");
  const callId = memberOf(message, "tool_call_id");
  const parts = partsOf(memberOf(message, "content"));
  if (role === "tool" && typeof callId === "string") return { role, parts, calls: [], resultOf: callId };
  return { role, parts, calls: listOf(memberOf(message, "tool_calls")).map(callOf) };
}

function partsOf(content: unknown): readonly SaidPart[] {
  if (typeof content === "string") return [{ text: content }];
  return listOf(content).map((part) => {
    const text = memberOf(part, "text");
    return typeof text === "string" ? { text } : { type: memberOf(part, "type") };
  });
}

function callOf(call: unknown): SaidCall {
  const called = memberOf(call, "function") ?? memberOf(call, "custom");
  const text = memberOf(called, "arguments") ?? memberOf(called, "input");
  return { id: memberOf(call, "id"), name: memberOf(called, "name"), text };
}

function lastFirst(list: unknown): readonly unknown[] {
  return itemsOf(list).slice(-maxSaid).toReversed();
}

function listOf(value: unknown): readonly unknown[] {
  return itemsOf(value).slice(0, maxSaid);
}

function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== "object" || value === null) return undefined;
  return (value as Record<string, unknown>)[name];
}

function textOf(value: unknown, name: string): string | undefined {
  const text = memberOf(value, name);
  return typeof text === "string" && text !== "" ? text.slice(0, maxNameLength) : undefined;
}
