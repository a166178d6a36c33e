// Describes a wire format to the rest of the gateway.
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
 * Rewrites a body that a client sent in the form of another API; returns undefined if the body needs no rewriting.
 * `validate` throws `invalid_request` for a value that does not fit a schema.
 */
export type Rewriting = (
  body: Readonly<Record<string, unknown>>,
  validate: (schema: z.ZodType, value: unknown) => void,
) => Readonly<Record<string, unknown>> | undefined;

/** A dialect per operation. All have the same members in the same order, so that property reads stay monomorphic. */
export interface Dialect extends AnswerFormat {
  readonly operation: Operation;
  /** The endpoint in words, and the capability that a model needs for it. */
  readonly endpoint: string;
  readonly capability: CapabilityName;
  /** Name of the operation in OpenTelemetry's conventions for generative AI. */
  readonly spanName: string;

  /** The vendor of the API. Errors and rate-limit headers have this vendor's form. */
  readonly maker: "openai" | "anthropic";
  /**
   * The format that translates conversations for model servers of another format; undefined if the operation has no
   * conversation.
   */
  readonly format: ConversationFormat | undefined;
  /** The description of a task, which a model answers in one step; undefined for other operations. */
  readonly task:
    | Pick<
        Task,
        "check" | "added" | "readings" | "answerTokens" | "units" | "form" | "events" | "answersBytes" | "answersText"
      >
    | undefined;

  /** Schema of the request body. */
  readonly schema: z.ZodType;
  /** Schema of a token-counting request, if it differs from `schema`. */
  readonly countSchema: z.ZodType | undefined;
  /** Rewrites requests in the form of another API. Undefined if no client sends such requests. */
  readonly rewritten: Rewriting | undefined;
  /**
   * Members that the model reads, including the prompt, if `shownTokens` counts their tokens. If undefined, the texts
   * of the prompt are counted, and some other members as JSON.
   */
  readonly shownMembers: readonly string[] | undefined;
  /** Estimates the tokens of everything that the model reads of a request. */
  promptTokens(body: Readonly<Record<string, unknown>>): number;
  /**
   * Reports whether every server of this format understands the whole request. Some servers, for example, know only
   * function tools.
   */
  isPlain(body: Readonly<Record<string, unknown>>): boolean;
  /**
   * Returns members, as JSON, that replace the client's for a model server of the same format. The client's contain
   * data that the gateway sealed, or reasoning that OpenAI would refuse. Returns undefined if nothing is replaced. The
   * function is undefined if the format has no such data.
   */
  readonly opened:
    | ((
        body: Readonly<Record<string, unknown>>,
        seal: Seal,
        isOpenai: boolean,
      ) => Readonly<Record<string, string>> | undefined)
    | undefined;
  /** True if `user_id` of `metadata` names the end user to servers. */
  readonly namesUserInMetadata?: true;
  /** True if servers store an answer unless the request forbids it. */
  readonly isStoredByDefault: boolean;
  /** True if a stream reports usage only if `stream_options` asks for it. */
  readonly asksForUsage: boolean;
  /** The member that limits the tokens of an answer, and its older name if it has one. */
  readonly limitMembers: readonly [newer: string, older?: string];
  /** Returns the lowest token limit that servers accept for this request. */
  minLimit(body: Readonly<Record<string, unknown>>): number;
  /**
   * True if every request must have a token limit. The limit is then what the client accepts and may exceed the model's
   * maximum.
   */
  readonly isLimitRequired: boolean;
  /** True if servers know `max_completion_tokens`; otherwise they must get the older name, `max_tokens`. */
  readonly knowsNewerLimit: boolean;
  /** Returns the number of parallel generations. `prompts` is the number of prompts in the request. */
  width(choices: number, bestOf: number, prompts: number): number;
  /** Reports whether the prompt has images, audio or files, whose token counts do not follow from its text. */
  hasMedia(prompt: unknown): boolean;

  /** Returns the gateway's own id of the answer. */
  idOf(requestId: string): string;
  /** Converts a whole answer to the form that the client expects. Throws `upstream_error` for an unusable answer. */
  readAnswer(bytes: ByteSpan, request: AskedRequest, serving: Serving, names: AnswerNames): Answer;
  /** The format for forwarding long answers as they arrive; undefined if answers are read as a whole. */
  readonly long: LongFormat | undefined;
  /** Converts a streamed answer to the form that the client expects. */
  stream(request: AskedRequest, names: AnswerNames): AnswerStream;
  /** Describes the storage of answers; undefined if answers are not stored. */
  readonly kept: KeptAnswers | undefined;
  /** Reports whether a request refers to stored items, such as the preceding response; undefined if none can. */
  readonly namesKept: ((body: Readonly<Record<string, unknown>>) => boolean) | undefined;
  /** True if a stream begins with the token count of the prompt. */
  readonly reportsPromptFirst: boolean;
  /** The keep-alive for a client that waits in the middle of a stream. */
  readonly keepAlive: string;
  /**
   * Writes the event that reports an error in an open stream. `rendered` is its JSON. Undefined if the event depends on
   * earlier ones.
   */
  readonly errorEvent: ((rendered: string) => string) | undefined;

  /**
   * Messages for a trace: of a prompt, the last first; of a whole answer; of a stream's chunk in the client's format.
   */
  readonly asked: (prompt: unknown) => Iterable<Said>;
  readonly answered: (answer: unknown) => readonly Said[];
  readonly streamed: (chunk: unknown) => readonly SaidPiece[];
  /** Adds the id, model, finish reasons and token details that a chunk or a whole answer reports. */
  readReported(reported: ReportedAnswer, value: unknown): void;
}
