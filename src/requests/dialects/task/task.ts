// A task is an operation in which a model answers one request. The request is JSON or a form. The answer is whole, a
// stream of events, or bytes. A new task needs an entry in tasks.ts, and its path in domain/models/operation.ts.
import type { z } from "zod";
import type { CapabilityName } from "../../../domain/models/capabilities.ts";
import type { Operation } from "../../../domain/models/operation.ts";
import type { UsageUnits } from "../../../domain/usage/usage-parts.ts";
import type { ReplyUsage } from "../conversation/reply.ts";

export type Json = Readonly<Record<string, unknown>>;

export interface Task {
  readonly operation: Operation;
  /** Name of the endpoint, as part of a sentence. */
  readonly endpoint: string;
  readonly capability: CapabilityName;
  /** The URL paths of the endpoint for clients. */
  readonly paths: readonly string[];
  readonly doc: TaskDoc;
  /** Schema of the request body. If the request is a form, this is the schema of the equivalent JSON. */
  readonly schema: z.ZodType;
  readonly answer: z.ZodType;
  /** The description of the form. Undefined if the task accepts only JSON. */
  readonly form: TaskForm | undefined;
  /** The description of the events. Undefined if the answer is always whole. */
  readonly events: TaskEvents | undefined;
  /** Reports whether the answer to this request, if it is not streamed, is bytes that are forwarded as they arrive. */
  answersBytes(body: Json): boolean;
  /** True if the answer is text, in whatever format. */
  readonly answersText: boolean;
  /** Checks a request. Throws `invalid_request` for faults that the schema cannot express. */
  check(body: Json): void;
  /**
   * Returns members, as JSON, that are added to the client's members. Some servers know a member only by another name.
   */
  added(body: Json): Readonly<Record<string, string>> | undefined;
  /** Name of the member that holds the prompt, and names of all members whose text a model reads. */
  readonly promptMember: string;
  readonly shownMembers: readonly string[];
  /**
   * Returns how often a model reads the members in `repeated`, for example a query once for each document. The number
   * is at least 1.
   */
  readings(body: Json): number;
  /** Names of the members that a model reads repeatedly. All other members are read once. */
  readonly repeated: readonly string[];
  /**
   * Maximum number of tokens in the answer, as the server counts them. The number is 0 if answers have no tokens, and
   * undefined if it is unknown.
   */
  answerTokens(body: Json): number | undefined;
  /**
   * Returns the units that are counted besides tokens, as far as the request determines them. Returns undefined if
   * there are none.
   */
  units(body: Json): UsageUnits | undefined;
  /**
   * Names of members, of which an answer must have at least one. `items` means a list that has items and no null items.
   */
  readonly answerMembers: Readonly<Record<string, "items" | "list" | "text">>;
  /** Maximum size in bytes of one item of an answer. The prompt or `n` sets the number of items. */
  readonly itemBytes: number;
  /**
   * Returns members, as JSON, that the client gets in addition to the server's members. Throws `upstream_error` if the
   * answer does not fit the request. `context` is the model's context in tokens, if known.
   */
  completed(answer: Json, body: Json, context: number | undefined): Readonly<Record<string, string>> | undefined;
  /** Returns the usage that an answer or its last event reports, or undefined if there is none. */
  usage(answer: Json): ReplyUsage | undefined;
}

export interface TaskDoc {
  readonly operationId: string;
  readonly summary: string;
  readonly description?: string;
  /** An example of a JSON request. Tasks with a form have none. */
  readonly example?: Json;
  readonly answerDescription: string;
}

/** Describes the form that clients send for a task (multipart/form-data). */
export interface TaskForm {
  /** Names of the file fields. Only the first field is required. */
  readonly files: readonly [string, ...string[]];
  /** True if clients may send JSON instead of the form. */
  readonly orJson: boolean;
}

/** Describes the stream of events that a task has. */
export interface TaskEvents {
  /** Schema of one event, for the API reference. */
  readonly shape: z.ZodType;
  /** Reports whether the request asks for a stream. */
  isAsked(body: Json): boolean;
  /** The type of the event that completes the answer or one of its items. Such an event may report usage. */
  readonly last: string;
  /** For each type of event, the name of the member that holds a part of the answer. */
  readonly delivered: Readonly<Record<string, string>>;
  /**
   * Returns the units of a stream that ended early, after this number of complete items. If `begun` is true, a part of
   * one more item arrived.
   */
  units?(units: UsageUnits, complete: number, begun: boolean): UsageUnits;
  /** Returns the events for an answer that arrived as a whole. */
  ofWhole(answer: Json): readonly Json[];
  /**
   * Functions that translate a stream in the chat completions format. Undefined if no server sends the task's answer in
   * this format.
   */
  readonly ofChunks?: { delta(text: string): Json; done(text: string, usage: Json | undefined): Json };
}

/**
 * Default values for tasks whose request and whole answer are JSON, and whose members have the same names at every
 * server.
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
