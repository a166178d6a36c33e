// Reads the answer to a task. The client gets the server's text, except for the model's name and members that the
// gateway adds.
import { type ByteSpan, withoutMark } from "../../../base/bytes/byte-span.ts";
import type { Answer, AskedRequest, Serving } from "../answer.ts";
import { reportedFault } from "../engine-fault.ts";
import type { Delivered } from "../least-usage.ts";
import { malformed } from "../malformed.ts";
import { edited, parseObject, ReadAnswer } from "../read-answer.ts";
import type { Json, Task } from "./task.ts";
import { usageOfTask } from "./task-usage.ts";

/** Reads a whole answer. Throws `upstream_error` if the answer is unusable. */
export function readTaskAnswer(task: Task, all: ByteSpan, request: AskedRequest, serving: Serving): Answer {
  // Some servers put a byte-order mark before the answer.
  const bytes = withoutMark(all);
  serving.trace?.answer(bytes);
  const { text } = bytes;
  const answer = requireAnswer(task, text, serving);
  const usage = usageOfTask(task.usage(answer), task.units(request.body), request, heardIn(answer, task));
  const { id, context } = serving.model;
  const completed = task.completed(answer, request.body, context);
  const isNamed = typeof answer["model"] !== "string" || answer["model"] === id;
  if (isNamed && !completed) return new ReadAnswer(bytes, usage);
  return new ReadAnswer(edited(text, { ...completed, ...(isNamed ? {} : { model: JSON.stringify(id) }) }), usage);
}

/**
 * Returns the text of a transcript. The tokens of a transcript are not estimated, because transcriptions are counted in
 * seconds.
 */
function heardIn({ text }: Json, { answersText }: Task): Delivered {
  return { bytes: answersText === true && typeof text === "string" ? Buffer.byteLength(text) : 0, tokens: 0 };
}

/** Returns the answer in this text. Throws `upstream_error` if the answer is invalid. */
export function requireAnswer(task: Task, text: string, serving: Serving): Json {
  const answer = parseObject(text);
  if (answer["error"] !== undefined && answer["error"] !== null) {
    throw reportedFault(text, serving.deployment.engine, "The model server failed.", "error in a 200 answer");
  }
  const members = Object.entries(task.answerMembers);
  const has = ([name, kind]: (typeof members)[number]) => isOfKind(answer[name], kind);
  if (!members.some(has)) throw malformed(`no ${members.map(([name, kind]) => `${kind} ${name}`).join(" or ")}`);
  return answer;
}

function isOfKind(value: unknown, kind: Task["answerMembers"][string]): boolean {
  if (kind === "text") return typeof value === "string";
  if (!Array.isArray(value)) return false;
  return kind === "list" || (value.length > 0 && !value.includes(null));
}
