// A wire format in which a model is asked: what the rest of the gateway has to know of it.
import type { z } from "zod";
import type { capabilityNames } from "../domain/models/capabilities.ts";
import type { Operation } from "../domain/models/operation.ts";

/** One for each operation, all with the same members in the same order: what reads them stays monomorphic. */
export interface Dialect {
  readonly operation: Operation;
  /** The endpoint in words, and what a model must be able to do for it. */
  readonly endpoint: string;
  readonly capability: (typeof capabilityNames)[number];
  /** Of the conventions for generative AI of OpenTelemetry. */
  readonly spanName: string;

  /** Of the body of a request. */
  readonly schema: z.ZodType;
  /** The member that is the prompt. */
  readonly promptMember: string;
  /** Whether that is a conversation: messages, each of somebody. Else it is a text or several, or their tokens. */
  readonly isConversation: boolean;
  /** Whether an answer is generated token by token: only then it can be streamed, and limited. */
  readonly generates: boolean;
  /** Whether servers know `max_completion_tokens`; where they do not they must be told by its older name, `max_tokens`. */
  readonly knowsNewerLimit: boolean;
  /** Generations side by side for a request with these figures. `prompts`: how many the prompt is. */
  width(choices: number, bestOf: number, prompts: number): number;
  /** Whether the prompt has images, audio or files, whose tokens its text does not tell. */
  hasMedia(prompt: unknown): boolean;

  /** The member of an answer that holds what was asked for, and the names of a whole answer and of a chunk. */
  readonly answerList: string;
  readonly answerObject: string;
  readonly chunkObject: string;
  /** Whether it may be kept, and read again by its id. */
  readonly isKept: boolean;
  /** Our own id of the answer; undefined where an answer has none. */
  idOf(requestId: string): string;
  /**
   * Gives the items of an answer the encoding that the request asks for, in place; says whether it changed one. Throws
   * `upstream_error` where what is there cannot be what was asked for.
   */
  encode(items: unknown[], request: AskedItems): boolean;
}

/** The part of a request that says how items are encoded. */
export interface AskedItems {
  readonly body: Readonly<Record<string, unknown>>;
  readonly hasMedia: boolean;
}
