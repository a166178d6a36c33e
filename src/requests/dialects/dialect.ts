// Describes an API format to the other parts of the gateway.
import type { z } from "zod";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { CapabilityName } from "../../domain/models/capabilities.ts";
import type { Operation } from "../../domain/models/operation.ts";
import type { Seal } from "../../domain/seal.ts";
import type { Answer, AnswerFormat, AnswerNames, AnswerStream, AskedRequest, KeptAnswers, Serving } from "./answer.ts";
import type { ConversationFormat } from "./conversation/format.ts";
import type { LongFormat } from "./long-answer.ts";
import type { ReportedAnswer, Said, SaidPiece } from "./said.ts";
import type { Task } from "./task/task.ts";

/**
 * Rewrites a body that a client sent in the form of another API. Returns undefined if the body needs no rewriting.
 * `validate` throws `invalid_request` if a value does not fit a schema.
 */
export type Rewriting = (
  body: Readonly<Record<string, unknown>>,
  validate: (schema: z.ZodType, value: unknown) => void,
) => Readonly<Record<string, unknown>> | undefined;

/**
 * The API format of one operation. All dialects have the same members in the same order, so that the engine can read
 * properties quickly (monomorphic reads).
 */
export interface Dialect extends AnswerFormat {
  readonly operation: Operation;
  /** Name of the endpoint in an error message, and the capability that a model needs for this endpoint. */
  readonly endpoint: string;
  readonly capability: CapabilityName;
  /** Name of this operation in OpenTelemetry's conventions for generative AI. */
  readonly spanName: string;

  /** The vendor of the API. Errors and rate-limit headers follow this vendor's form. */
  readonly maker: "openai" | "anthropic";
  /**
   * The format that translates conversations for model servers that use another API format. Undefined if the operation
   * has no conversation.
   */
  readonly format: ConversationFormat | undefined;
  /** The description of a task that a model answers in one step. Undefined for other operations. */
  readonly task:
    | Pick<
        Task,
        "check" | "added" | "readings" | "answerTokens" | "units" | "form" | "events" | "answersBytes" | "answersText"
      >
    | undefined;

  /** Schema of the request body. */
  readonly schema: z.ZodType;
  /** Schema of a request to count tokens, if it differs from `schema`. */
  readonly countSchema: z.ZodType | undefined;
  /** Rewrites requests in the form of another API. Undefined if no client sends such requests. */
  readonly rewritten: Rewriting | undefined;
  /**
   * Names of the members that the model reads, including the prompt, if `shownTokens` counts their tokens. If
   * undefined, the texts of the prompt are counted, and some other members are counted as JSON.
   */
  readonly shownMembers: readonly string[] | undefined;
  /** Estimates the tokens of all parts of a request that the model reads. */
  promptTokens(body: Readonly<Record<string, unknown>>): number;
  /**
   * Reports whether every model server of this format understands the whole request. Some servers know, for example,
   * only function tools.
   */
  isPlain(body: Readonly<Record<string, unknown>>): boolean;
  /**
   * Returns members, as JSON, that replace members of the client's request if the model server uses the same format.
   * The client's members contain data that the gateway sealed, or reasoning that OpenAI would refuse. Returns undefined
   * if nothing is replaced. The function itself is undefined if the format has no such data.
   */
  readonly opened:
    | ((
        body: Readonly<Record<string, unknown>>,
        seal: Seal,
        isOpenai: boolean,
      ) => Readonly<Record<string, string>> | undefined)
    | undefined;
  /** True if the member `user_id` of `metadata` tells model servers who the end user is. */
  readonly namesUserInMetadata?: true;
  /** True if model servers store an answer unless the request forbids it. */
  readonly isStoredByDefault: boolean;
  /** True if a stream reports usage only if `stream_options` asks for it. */
  readonly asksForUsage: boolean;
  /** Name of the member that limits the tokens of an answer, and its older name if it has one. */
  readonly limitMembers: readonly [newer: string, older?: string];
  /** Returns the lowest token limit that model servers accept for this request. */
  minLimit(body: Readonly<Record<string, unknown>>): number;
  /**
   * True if every request must have a token limit. Such a limit is only the most that the client accepts, so it may
   * exceed the model's maximum.
   */
  readonly isLimitRequired: boolean;
  /** True if model servers know `max_completion_tokens`. If false, they must get the older name, `max_tokens`. */
  readonly knowsNewerLimit: boolean;
  /**
   * Returns the number of generations that run in parallel for a request. `prompts` is the number of prompts in the
   * request.
   */
  width(choices: number, bestOf: number, prompts: number): number;
  /**
   * Reports whether the prompt has images, audio or files. Their number of tokens cannot be estimated from the text.
   */
  hasMedia(prompt: unknown): boolean;

  /** Returns the id that the gateway itself gives the answer. */
  idOf(requestId: string): string;
  /** Converts a whole answer to the form that the client expects. Throws `upstream_error` if the answer is unusable. */
  readAnswer(bytes: ByteSpan, request: AskedRequest, serving: Serving, names: AnswerNames): Answer;
  /** Describes how to forward a long answer while it arrives. Undefined if answers are always read as a whole. */
  readonly long: LongFormat | undefined;
  /** Converts a streamed answer to the form that the client expects. */
  stream(request: AskedRequest, names: AnswerNames): AnswerStream;
  /** Describes how answers are stored. Undefined if answers are not stored. */
  readonly kept: KeptAnswers | undefined;
  /**
   * Reports whether a request refers to stored items, such as the preceding response. Undefined if no request of this
   * operation can.
   */
  readonly namesKept: ((body: Readonly<Record<string, unknown>>) => boolean) | undefined;
  /** True if a stream begins with the token count of the prompt. */
  readonly reportsPromptFirst: boolean;
  /** The keep-alive text for a client that is waiting in the middle of a stream. */
  readonly keepAlive: string;
  /**
   * Writes the event that reports an error in an open stream. `rendered` is the JSON of the error. Undefined if the
   * event depends on earlier events.
   */
  readonly errorEvent: ((rendered: string) => string) | undefined;

  /**
   * Functions that return the messages for a trace: of a prompt, beginning with the last message; of a whole answer;
   * and of a stream's chunk in the client's format.
   */
  readonly asked: (prompt: unknown) => Iterable<Said>;
  readonly answered: (answer: unknown) => readonly Said[];
  readonly streamed: (chunk: unknown) => readonly SaidPiece[];
  /** Adds to `reported` the id, model, finish reasons and token details that a chunk or a whole answer reports. */
  readReported(reported: ReportedAnswer, value: unknown): void;
}
