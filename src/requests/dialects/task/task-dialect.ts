// Builds the dialect of a task. All tasks have the same dialect, except for what their entries in tasks.ts define.
import { generates } from "../../../domain/models/operation.ts";
import { hasMediaPart, shownTokens } from "../conversation/shown-tokens.ts";
import type { Dialect } from "../dialect.ts";
import { comment } from "../keep-alive.ts";
import type { LongFormat } from "../long-answer.ts";
import { piecesSaid, readReported, textsSaid } from "../openai/said.ts";
import type { Json, Task } from "./task.ts";
import { readTaskAnswer } from "./task-answer.ts";
import { TaskStream } from "./task-stream.ts";
import { usageOfTask } from "./task-usage.ts";

/**
 * Builds the dialect. Its members have the same order as in all dialects, so that the engine can read properties
 * quickly (monomorphic reads).
 */
export function taskDialect(task: Task): Dialect {
  const { operation, endpoint, capability, schema, promptMember, shownMembers } = task;
  return {
    operation,
    endpoint,
    capability,
    spanName: operation,
    maker: "openai",
    format: undefined,
    task,

    schema,
    countSchema: undefined,
    rewritten: undefined,
    shownMembers,
    promptTokens: (body) => tokensRead(task, body),
    isPlain: () => true,
    opened: undefined,
    isStoredByDefault: false,
    asksForUsage: false,
    limitMembers: ["max_completion_tokens"],
    minLimit: () => 1,
    isLimitRequired: false,
    promptMember,
    isConversation: false,
    generates: generates[operation],
    knowsNewerLimit: true,
    width: () => 1,
    // A task with files counts as having media, because its number of tokens cannot be estimated from its text.
    hasMedia: task.form ? () => true : hasMediaPart,

    answerList: Object.keys(task.answerMembers)[0] ?? "",
    answerObject: "",
    chunkObject: "",
    itemBytes: task.itemBytes,
    idOf: (requestId) => requestId,
    encode: () => false,
    readAnswer: (bytes, request, serving) => readTaskAnswer(task, bytes, request, serving),
    long: longFormat(task),
    stream: (request) => new TaskStream(task, request),
    reportsPromptFirst: false,
    keepAlive: comment,
    errorEvent: undefined,
    kept: undefined,
    namesKept: undefined,

    asked: textsSaid,
    answered: () => [],
    streamed: piecesSaid,
    readReported,
  };
}

/** Returns the format of long answers. Only answers with images are long. Other answers are read as a whole. */
function longFormat(task: Task): LongFormat | undefined {
  if (task.itemBytes === 0) return undefined;
  return {
    items: () => undefined,
    encoder: () => undefined,
    edited: (name, value, _request, { id }) =>
      name === "model" && typeof value === "string" ? JSON.stringify(id) : undefined,
    usage(members, items, request) {
      const reported = task.usage({ ...members, [Object.keys(task.answerMembers)[0] ?? ""]: Array(items) });
      return usageOfTask(reported, task.units(request.body), request, { bytes: 0, tokens: 0 });
    },
  };
}

function tokensRead({ shownMembers, repeated, readings }: Task, body: Json): number {
  const once = shownTokens(
    body,
    shownMembers.filter((name) => !repeated.includes(name)),
  );
  return once + readings(body) * shownTokens(body, repeated);
}
