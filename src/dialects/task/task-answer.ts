// Reads the answer to a task: it reaches the client as its server wrote it, but for the name of the model.
import { type ByteSpan, withoutMark } from "../../base/bytes/byte-span.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { Answer, AskedRequest, Serving } from "../answer.ts";
import { toldFault } from "../engine-fault.ts";
import { malformed } from "../malformed.ts";
import { edited, parseObject, ReadAnswer } from "../read-answer.ts";
import { partsOf } from "../told-parts.ts";
import type { Json, Task } from "./task.ts";

/** Throws `upstream_error` on what is no usable answer. */
export function readTaskAnswer(task: Task, all: ByteSpan, request: AskedRequest, serving: Serving): Answer {
  // Some servers begin with one.
  const bytes = withoutMark(all);
  serving.trace?.answer(bytes);
  const { text } = bytes;
  const answer = parseObject(text);
  if (answer["error"] !== undefined && answer["error"] !== null) {
    throw toldFault(text, serving.deployment.engine, "The model server failed.", "error in a 200 answer");
  }
  const { answerMembers, answerIs } = task;
  const isThere = (value: unknown) => (answerIs === "list" ? Array.isArray(value) : typeof value === "string");
  if (!answerMembers.some((name) => isThere(answer[name]))) {
    throw malformed(`no ${answerIs} of ${answerMembers.join(" or ")}`);
  }
  const usage = usageOf(task, answer, request);
  const { id, context } = serving.model;
  const completed = task.completed(answer, request.body, context);
  const isNamed = typeof answer["model"] !== "string" || answer["model"] === id;
  if (isNamed && !completed) return new ReadAnswer(bytes, usage);
  return new ReadAnswer(edited(text, { ...completed, ...(isNamed ? {} : { model: JSON.stringify(id) }) }), usage);
}

/** What was told counts; tokens that nobody told are estimated, and other units counted in the request. */
function usageOf(task: Task, answer: Json, { body, promptTokens }: AskedRequest): TokenUsage {
  const told = task.usage(answer);
  const details = { ...task.units(body), ...told?.details };
  const parts = partsOf({ ...told, details: Object.keys(details).length > 0 ? details : undefined });
  const { promptTokens: tokens, completionTokens = 0 } = told ?? {};
  if (tokens === undefined) return { promptTokens, completionTokens, estimated: true, parts };
  return { promptTokens: tokens, completionTokens, estimated: false, parts };
}
