// Reads the answer to a task: it reaches the client as its server wrote it, but for the name of the model.
import { type ByteSpan, type Bytes, withoutMark } from "../../base/bytes/byte-span.ts";
import { editObject, scanObject } from "../../base/text/json-text.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { Answer, AskedRequest, Serving } from "../answer.ts";
import { toldFault } from "../engine-fault.ts";
import { malformed } from "../malformed.ts";
import { partsOf } from "../told-parts.ts";
import type { Json, Task } from "./task.ts";

class TaskAnswer implements Answer {
  readonly body: Bytes | string;
  readonly usage: TokenUsage;

  constructor(body: Bytes | string, usage: TokenUsage) {
    this.body = body;
    this.usage = usage;
  }

  get text(): string {
    return typeof this.body === "string" ? this.body : this.body.solid.text;
  }
}

/** Throws `upstream_error` on what is no usable answer. */
export function readTaskAnswer(task: Task, all: ByteSpan, request: AskedRequest, serving: Serving): Answer {
  // Some servers begin with one.
  const bytes = withoutMark(all);
  serving.trace?.answer(bytes);
  const { text } = bytes;
  const answer = parsed(text);
  if (answer["error"] !== undefined && answer["error"] !== null) {
    throw toldFault(text, serving.deployment.engine, "The model server failed.", "error in a 200 answer");
  }
  if (!task.answerLists.some((name) => Array.isArray(answer[name]))) {
    throw malformed(`no list of ${task.answerLists.join(" or ")}`);
  }
  const usage = usageOf(task, answer, request);
  const { id } = serving.model;
  if (typeof answer["model"] !== "string" || answer["model"] === id) return new TaskAnswer(bytes, usage);
  return new TaskAnswer(withModel(text, id), usage);
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

function withModel(text: string, id: string): string {
  try {
    return editObject(text, scanObject(text), { model: JSON.stringify(id) });
  } catch {
    // Its reason may quote the answer.
    throw malformed("JSON that cannot be edited: a field appears twice, or there is too much of it");
  }
}

function parsed(text: string): Json {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Json;
  } catch {
    // Falls through: the same refusal for what is no JSON and what is no object.
  }
  throw malformed(`${text.length} characters that are no JSON object`);
}
