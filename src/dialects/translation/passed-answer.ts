// A whole answer of an engine that speaks the client's format: its own bytes, but for what is ours to say.
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import { editObject, scanObject } from "../../base/text/json-text.ts";
import type { Answer, AnswerNames, AskedRequest, Serving } from "../answer.ts";
import type { CallNames } from "../conversation/conversation.ts";
import type { ConversationFormat } from "../conversation/format.ts";
import { isObject } from "../conversation/said.ts";
import { malformed } from "../malformed.ts";
import { CountedReply } from "./counted-reply.ts";
import { parsedAnswer } from "./engine-answer.ts";
import { wholeUsage } from "./translated-answer.ts";

const noNames: CallNames = new Map();

/** Throws `upstream_error` on what is no usable answer. */
export function passedAnswer(
  format: ConversationFormat,
  bytes: ByteSpan,
  request: AskedRequest,
  serving: Serving,
  names: AnswerNames,
): Answer {
  serving.trace?.answer(bytes);
  const { text } = bytes;
  const answer = parsedAnswer(text, serving);
  const reply = new CountedReply();
  format.reader(noNames, serving.deployment.engine).whole(answer, reply);
  const usage = wholeUsage(reply, request, serving);
  const edits = ownMembers(answer, serving, names);
  const body = Object.keys(edits).length === 0 ? bytes : edited(text, edits);
  return { body, text: typeof body === "string" ? body : text, usage };
}

/**
 * The public id of the model, an id of ours where it has to be found again by it, and what else is ours to say; as JSON.
 * What the engine says as well, or leaves out where there is nothing to say, stays as it is.
 */
export function ownMembers(
  answer: Readonly<Record<string, unknown>>,
  serving: Serving | undefined,
  names: AnswerNames,
): Record<string, string> {
  const edits: Record<string, string> = {};
  const model = serving?.model.id;
  if (model !== undefined && answer["model"] !== model) edits["model"] = JSON.stringify(model);
  if (names.ownId || typeof answer["id"] !== "string") edits["id"] = JSON.stringify(names.id);
  for (const [name, own] of Object.entries(names.members ?? {})) {
    const said = answer[name] ?? null;
    if (own !== said && !(isObject(own) && JSON.stringify(own) === JSON.stringify(said))) {
      edits[name] = JSON.stringify(own);
    }
  }
  return edits;
}

export function edited(text: string, edits: Readonly<Record<string, string>>): string {
  try {
    return editObject(text, scanObject(text), edits);
  } catch {
    // Its reason may quote the answer.
    throw malformed("JSON that cannot be edited: a field appears twice, or there is too much of it");
  }
}
