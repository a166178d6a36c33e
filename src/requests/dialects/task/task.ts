// A task: a model is asked once, by JSON or a form, and answers as a whole, by events or with bytes. A new one is an entry of tasks.ts, and its path in domain/models/operation.ts.
import type { z } from "zod";
import type { CapabilityName } from "../../../domain/models/capabilities.ts";
import type { Operation } from "../../../domain/models/operation.ts";
import type { UsageUnits } from "../../../domain/usage/usage-parts.ts";
import type { ReplyUsage } from "../conversation/reply.ts";

export type Json = Readonly<Record<string, unknown>>;

export interface Task {
  readonly operation: Operation;
  /** The endpoint in words, as part of a sentence. */
  readonly endpoint: string;
  readonly capability: CapabilityName;
  /** The path or paths by which clients ask for it. */
  readonly paths: readonly string[];
  readonly doc: TaskDoc;
  /** The body of a request; of a form, as the JSON that says the same. */
  readonly schema: z.ZodType;
  readonly answer: z.ZodType;
  /** Undefined: it is sent as JSON alone. */
  readonly form: TaskForm | undefined;
  /** Undefined: it is answered as a whole. */
  readonly events: TaskEvents | undefined;
  /** Whether the answer to such a request, where it is no stream of events, is bytes that go to the client as they come. */
  answersBytes(body: Json): boolean;
  /** Whether what it answers is text, whatever its form. */
  readonly saysText: boolean;
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
  /** The most tokens that the answer has by its server's account; 0 where answers have none; undefined: nobody knows. */
  answerTokens(body: Json): number | undefined;
  /** Counted beside tokens, as far as the request tells; undefined: nothing is. */
  units(body: Json): UsageUnits | undefined;
  /** Members of which an answer has to have one. `items`: a list with items, none of which is null. */
  readonly answerMembers: Readonly<Record<string, "items" | "list" | "text">>;
  /** Bytes of one item of an answer, of which there are as many as the prompt has, or as `n` says. */
  readonly itemBytes: number;
  /**
   * Members that the client gets beside the server's, as JSON. Throws `upstream_error` for an answer to something else than
   * was asked. `context`: tokens of the model, where they are known.
   */
  completed(answer: Json, body: Json, context: number | undefined): Readonly<Record<string, string>> | undefined;
  /** What an answer, or the last event of one, tells of its usage; undefined where it tells nothing. */
  usage(answer: Json): ReplyUsage | undefined;
}

export interface TaskDoc {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  /** Left out: it is sent as a form. */
  readonly example?: Json;
  readonly told: string;
}

/** How it is sent as a form (multipart/form-data). */
export interface TaskForm {
  /** The fields that are files: the first has to be there. */
  readonly files: readonly [string, ...string[]];
  /** Whether clients send it as JSON as well. */
  readonly orJson: boolean;
}

/** How it is answered by a stream of events. */
export interface TaskEvents {
  /** One event, for the reference. */
  readonly shape: z.ZodType;
  /** Whether the request asks for one. */
  isAsked(body: Json): boolean;
  /** The type of the event with which the answer, or one item of it, is complete; it may tell usage. */
  readonly last: string;
  /** Members of events that hold some of the answer, by the type of the event. */
  readonly delivered: Readonly<Record<string, string>>;
  /** Counted beside tokens of one that ended early, with so many items complete and, where `begun`, one more on its way. */
  units?(units: UsageUnits, complete: number, begun: boolean): UsageUnits;
  /** The events of an answer that came whole. */
  ofWhole(answer: Json): readonly Json[];
}

/** What holds of a task that is asked by JSON, in the same words everywhere, and answers with JSON as a whole. */
export const jsonTask = {
  form: undefined,
  events: undefined,
  answersBytes: () => false,
  saysText: false,
  itemBytes: 0,
  check: () => {},
  added: () => undefined,
  completed: () => undefined,
} as const satisfies Partial<Task>;
