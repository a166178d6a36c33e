// A wire format in which a model is asked: what the rest of the gateway has to know of it.
import type { z } from "zod";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { CapabilityName } from "../../domain/models/capabilities.ts";
import type { Operation } from "../../domain/models/operation.ts";
import type { Seal } from "../../domain/seal.ts";
import type { Answer, AnswerFormat, AnswerNames, AnswerStream, AskedRequest, KeptAnswers, Serving } from "./answer.ts";
import type { ConversationFormat } from "./conversation/format.ts";
import type { LongFormat } from "./long-answer.ts";
import type { Said, SaidPiece, ToldAnswer } from "./said.ts";
import type { Task } from "./task/task.ts";

/** One for each operation, all with the same members in the same order: what reads them stays monomorphic. */
export interface Dialect extends AnswerFormat {
  readonly operation: Operation;
  /** The endpoint in words, and what a model must be able to do for it. */
  readonly endpoint: string;
  readonly capability: CapabilityName;
  /** The operation in the conventions for generative AI of OpenTelemetry. */
  readonly spanName: string;

  /** Whose API it is: errors and limits are told in that one's form. */
  readonly maker: "openai" | "anthropic";
  /** By which its conversations are had with engines that speak another format; undefined where they are none. */
  readonly format: ConversationFormat | undefined;
  /** How it is asked, answered and counted, where it is one of the tasks that a model is asked once; undefined where it is none. */
  readonly task:
    | Pick<
        Task,
        "check" | "added" | "readings" | "answerTokens" | "units" | "form" | "events" | "answersBytes" | "saysText"
      >
    | undefined;

  /** The body of a request. */
  readonly schema: z.ZodType;
  /** The body of a request whose prompt is to be counted, where that is another. */
  readonly countSchema: z.ZodType | undefined;
  /**
   * Members that a model is shown, the prompt among them, where their tokens are counted as of `shownTokens`; undefined where
   * those of the prompt are its texts, and some members beside it are shown as JSON.
   */
  readonly shownMembers: readonly string[] | undefined;
  /** Estimated from all of a request that a model is shown. */
  promptTokens(body: Readonly<Record<string, unknown>>): number;
  /** Whether any server that knows the format understands all of the request: its tools are functions alone, for one thing. */
  isPlain(body: Readonly<Record<string, unknown>>): boolean;
  /**
   * Members, as JSON, that a server which speaks the format gets in place of the client's, as what we sealed for the client
   * is in them; undefined where nothing is. Left undefined where the format has nothing sealed.
   */
  readonly opened:
    | ((body: Readonly<Record<string, unknown>>, seal: Seal) => Readonly<Record<string, string>> | undefined)
    | undefined;
  /** Whether `user_id` of `metadata` names the end user to servers; left out: it does not. */
  readonly namesUserInMetadata?: true;
  /** Whether servers keep answers unless they are told not to. */
  readonly isKeptUnlessTold: boolean;
  /** Whether a stream tells its usage only where `stream_options` ask for it. */
  readonly asksForUsage: boolean;
  /** The member that limits the tokens of an answer, and its older name, where it has one. */
  readonly limitMembers: readonly [newer: string, older?: string];
  /** The fewest tokens of an answer that servers take as a limit beside the rest of such a request: fewer they refuse. */
  minLimit(body: Readonly<Record<string, unknown>>): number;
  /** Whether every request has to have one: then it says what the client takes, and not that the model can give so many. */
  readonly isLimitRequired: boolean;
  /** Whether servers know `max_completion_tokens`; where they do not they must be told by its older name, `max_tokens`. */
  readonly knowsNewerLimit: boolean;
  /** Generations side by side for a request with these figures. `prompts`: how many the prompt is. */
  width(choices: number, bestOf: number, prompts: number): number;
  /** Whether the prompt has images, audio or files, whose tokens its text does not tell. */
  hasMedia(prompt: unknown): boolean;

  /** Our own id of the answer. */
  idOf(requestId: string): string;
  /** Makes of a whole answer what the client was promised. Throws `upstream_error` on what is no usable answer. */
  readAnswer(bytes: ByteSpan, request: AskedRequest, serving: Serving, names: AnswerNames): Answer;
  /** The format by which long answers are passed on as they come; undefined if they are read as a whole. */
  readonly long: LongFormat | undefined;
  /** Makes of a streamed answer what the client was promised. */
  stream(request: AskedRequest, names: AnswerNames): AnswerStream;
  /** How answers are kept, to be read again by their id; undefined where they are not. */
  readonly kept: KeptAnswers | undefined;
  /** Whether a request names what is kept here, such as the response before it; undefined where none can. */
  readonly namesKept: ((body: Readonly<Record<string, unknown>>) => boolean) | undefined;
  /** Whether a stream of it begins with the tokens of the prompt. */
  readonly tellsPromptFirst: boolean;
  /** What a client that waits in the middle of a stream is sent, so that nobody takes it for dead. */
  readonly keepAlive: string;
  /** The event that tells an error in an open stream; `rendered`: its JSON. Undefined where it depends on what came before. */
  readonly errorEvent: ((rendered: string) => string) | undefined;

  /** What was said, for a trace: in a prompt, the last first; in a whole answer; in a chunk of a stream as the client gets it. */
  readonly asked: (prompt: unknown) => Iterable<Said>;
  readonly answered: (answer: unknown) => readonly Said[];
  readonly streamed: (chunk: unknown) => readonly SaidPiece[];
  /** Adds what a chunk or a whole answer of an engine tells of itself. */
  readTold(told: ToldAnswer, value: unknown): void;
}
