// A task: a model answers one request, which is JSON or a form, as a whole, by events or with bytes. A new task needs
// an entry in tasks.ts, and its path in domain/models/operation.ts.
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
  /** Paths of the endpoint for clients. */
  readonly paths: readonly string[];
  readonly doc: TaskDoc;
  /** Schema of the request body; for a form, of the equivalent JSON. */
  readonly schema: z.ZodType;
  readonly answer: z.ZodType;
  /** The description of the form; undefined if the task accepts only JSON. */
  readonly form: TaskForm | undefined;
  /** The description of the events; undefined if the answer is always whole. */
  readonly events: TaskEvents | undefined;
  /** Reports whether a whole answer to such a request is bytes that are forwarded as they arrive. */
  answersBytes(body: Json): boolean;
  /** True if the answer is text, whatever its format. */
  readonly answersText: boolean;
  /** Throws `invalid_request` for faults that the schema cannot express. */
  check(body: Json): void;
  /** Returns members, as JSON, that are added to the client's for servers that know only another name for a member. */
  added(body: Json): Readonly<Record<string, string>> | undefined;
  /** The member that holds the prompt, and all members whose text a model reads. */
  readonly promptMember: string;
  readonly shownMembers: readonly string[];
  /**
   * Returns how often a model reads the members in `repeated`: for example, a query once for each document. At least 1.
   */
  readings(body: Json): number;
  /** Members that a model reads repeatedly; all other members are read once. */
  readonly repeated: readonly string[];
  /** Maximum tokens of the answer as its server counts them; 0 if answers have none, undefined if unknown. */
  answerTokens(body: Json): number | undefined;
  /** Units that are counted beside tokens, as far as the request determines them; undefined if there are none. */
  units(body: Json): UsageUnits | undefined;
  /** Members of which an answer must have at least one. `items` is a list with items, none of which is null. */
  readonly answerMembers: Readonly<Record<string, "items" | "list" | "text">>;
  /** Bytes of one item of an answer. The prompt or `n` sets the number of items. */
  readonly itemBytes: number;
  /**
   * Returns members, as JSON, that the client gets in addition to the server's. Throws `upstream_error` for an answer
   * that does not fit the request. `context` is the model's context in tokens, if known.
   */
  completed(answer: Json, body: Json, context: number | undefined): Readonly<Record<string, string>> | undefined;
  /** Returns the usage that an answer, or its last event, reports; undefined if there is none. */
  usage(answer: Json): ReplyUsage | undefined;
}

export interface TaskDoc {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  /** The example of a JSON request; left out for a form. */
  readonly example?: Json;
  readonly answerDescription: string;
}

/** Describes the form of a task (multipart/form-data). */
export interface TaskForm {
  /** Names of the file fields; the first is required. */
  readonly files: readonly [string, ...string[]];
  /** True if clients may send JSON instead. */
  readonly orJson: boolean;
}

/** Describes the event stream of a task. */
export interface TaskEvents {
  /** Schema of one event, for the reference. */
  readonly shape: z.ZodType;
  /** Reports whether the request asks for a stream. */
  isAsked(body: Json): boolean;
  /** The type of the event that completes the answer or one item of it; such an event may report usage. */
  readonly last: string;
  /** Members of events that hold a part of the answer, by the type of the event. */
  readonly delivered: Readonly<Record<string, string>>;
  /**
   * Returns the units of a stream that ended early, after this many complete items. If `begun` is true, a part of one
   * more item arrived.
   */
  units?(units: UsageUnits, complete: number, begun: boolean): UsageUnits;
  /** Returns the events for an answer that arrived whole. */
  ofWhole(answer: Json): readonly Json[];
  /** Translates a stream in the format of chat completions; undefined if no server sends the task's answer in it. */
  readonly ofChunks?: { delta(text: string): Json; done(text: string, usage: Json | undefined): Json };
}

/**
 * Defaults for tasks with JSON requests whose members have the same names at every server, and with whole JSON answers.
 */
export const jsonTask = {
  form: undefined,
  events: undefined,
  answersBytes: () => false,
  answersText: false,
  itemBytes: 0,
  check: () => {},
  added: () => undefined,
  completed: () => undefined,
} as const satisfies Partial<Task>;
