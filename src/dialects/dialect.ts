// A wire format in which a model is asked: what the rest of the gateway has to know of it.
import type { z } from "zod";
import type { ByteSpan } from "../base/bytes/byte-span.ts";
import type { capabilityNames } from "../domain/models/capabilities.ts";
import type { Operation } from "../domain/models/operation.ts";
import type {
  Answer,
  AnswerCollector,
  AnswerFormat,
  AnswerNames,
  AnswerStream,
  AskedRequest,
  Serving,
} from "./answer.ts";
import type { Said, SaidPiece, ToldAnswer } from "./said.ts";

/** One for each operation, all with the same members in the same order: what reads them stays monomorphic. */
export interface Dialect extends AnswerFormat {
  readonly operation: Operation;
  /** The endpoint in words, and what a model must be able to do for it. */
  readonly endpoint: string;
  readonly capability: (typeof capabilityNames)[number];
  /** The operation in the conventions for generative AI of OpenTelemetry. */
  readonly spanName: string;

  /** The body of a request. */
  readonly schema: z.ZodType;
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
  /** Makes of a streamed answer what the client was promised. */
  stream(request: AskedRequest, names: AnswerNames): AnswerStream;
  /** For answers that may be kept, and read again by their id; undefined where they are not. */
  readonly collector: (() => AnswerCollector) | undefined;

  /** What was said, for a trace: in a prompt, the last first; in a whole answer; in a chunk of a stream as the client gets it. */
  readonly asked: (prompt: unknown) => Iterable<Said>;
  readonly answered: (answer: unknown) => readonly Said[];
  readonly streamed: (chunk: unknown) => readonly SaidPiece[];
  /** Adds what a chunk or a whole answer of an engine tells of itself. */
  readTold(told: ToldAnswer, value: unknown): void;
}
