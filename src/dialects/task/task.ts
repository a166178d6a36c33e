// A task: a model is asked once, by JSON, and answers as a whole. A new one is an entry of tasks.ts, and its path in domain/models/operation.ts.
import type { z } from "zod";
import type { CapabilityName } from "../../domain/models/capabilities.ts";
import type { Operation } from "../../domain/models/operation.ts";
import type { UsageDetails } from "../../domain/usage/usage-parts.ts";
import type { ReplyUsage } from "../conversation/reply.ts";

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
  /** Throws `invalid_request` for what the schema cannot say. */
  check(body: Json): void;
  /** Members that a server gets beside the client's, as JSON: what was said in other words than it may know. */
  added(body: Json): Readonly<Record<string, string>> | undefined;
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
  /** Members of which an answer has to have one, and what that is. */
  readonly answerMembers: readonly string[];
  readonly answerIs: "list" | "text";
  /**
   * Members that the client gets beside the server's, as JSON. Throws `upstream_error` for an answer to something else than
   * was asked. `context`: tokens of the model, where they are known.
   */
  completed(answer: Json, body: Json, context: number | undefined): Readonly<Record<string, string>> | undefined;
  /** What an answer tells of its usage; undefined where it tells nothing. */
  usage(answer: Json): ReplyUsage | undefined;
}

/** For a task that is asked and answered in the same words everywhere, with a list. */
export const asItIs = {
  check: () => {},
  added: () => undefined,
  completed: () => undefined,
  answerIs: "list",
} as const satisfies Partial<Task>;
