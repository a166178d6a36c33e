// A task: a model is asked once, by JSON, and answers as a whole. A new one is an entry of tasks.ts, and its path in domain/models/operation.ts.
import type { z } from "zod";
import type { CapabilityName } from "../../domain/models/capabilities.ts";
import { generates, type Operation } from "../../domain/models/operation.ts";
import type { UsageDetails } from "../../domain/usage/usage-parts.ts";
import type { ReplyUsage } from "../conversation/reply.ts";
import { hasMediaPart, shownTokens } from "../conversation/shown-tokens.ts";
import type { Dialect } from "../dialect.ts";
import { comment } from "../keep-alive.ts";
import { streamChunks } from "../openai/chunks.ts";
import { piecesSaid, readTold, textsSaid } from "../openai/said.ts";
import { readTaskAnswer } from "./task-answer.ts";

export type Json = Readonly<Record<string, unknown>>;

export interface Task {
  readonly operation: Operation;
  /** The endpoint in words, as part of a sentence. */
  readonly endpoint: string;
  readonly capability: CapabilityName;
  /** The path or paths by which clients ask for it. */
  readonly paths: readonly string[];
  readonly doc: { operationId: string; summary: string; description?: string; example: Json; told: string };
  readonly schema: z.ZodType;
  readonly answer: z.ZodType;
  /** The member that is asked about, and all whose text a model reads. */
  readonly promptMember: string;
  readonly shownMembers: readonly string[];
  /** How often a model reads what stands there once: a query once for each document. At least 1. */
  readings(body: Json): number;
  /** Members that are read so often; the others are read once. */
  readonly repeated: readonly string[];
  /** The most tokens that the answer has by its server's account; 0 where answers have none. */
  answerTokens(body: Json): number;
  /** Counted beside tokens, as far as the request tells; undefined: nothing is. */
  units(body: Json): UsageDetails | undefined;
  /** Lists of which an answer has to have one. */
  readonly answerLists: readonly string[];
  /** What an answer tells of its usage; undefined where it tells nothing. */
  usage(answer: Json): ReplyUsage | undefined;
}

/** The members in the order of all dialects: what reads them stays monomorphic. */
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
    shownMembers,
    promptTokens: (body) => tokensRead(task, body),
    isPlain: () => true,
    opened: undefined,
    isKeptUnlessTold: false,
    asksForUsage: false,
    limitMembers: ["max_completion_tokens"],
    leastLimit: () => 1,
    isLimitRequired: false,
    promptMember,
    isConversation: false,
    generates: generates[operation],
    knowsNewerLimit: true,
    width: () => 1,
    hasMedia: hasMediaPart,

    answerList: task.answerLists[0] ?? "",
    answerObject: "",
    chunkObject: "",
    idOf: (requestId) => requestId,
    encode: () => false,
    readAnswer: (bytes, request, serving) => readTaskAnswer(task, bytes, request, serving),
    stream: streamChunks,
    tellsPromptFirst: false,
    keepAlive: comment,
    errorEvent: undefined,
    kept: undefined,
    namesKept: undefined,

    asked: textsSaid,
    answered: () => [],
    streamed: piecesSaid,
    readTold,
  };
}

function tokensRead({ shownMembers, repeated, readings }: Task, body: Json): number {
  const once = shownTokens(
    body,
    shownMembers.filter((name) => !repeated.includes(name)),
  );
  return once + readings(body) * shownTokens(body, repeated);
}
