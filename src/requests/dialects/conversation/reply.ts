// A model's answer in the neutral format, while it arrives. The reader of one format passes the pieces of the answer to
// the writer of another format.

import type { Seal } from "../../../domain/seal.ts";
import type { UsageDetails } from "../../../domain/usage/usage-parts.ts";
import type { AnswerMark, OwnMembers } from "../answer.ts";
import type { CallKind, ReasoningProof } from "./conversation.ts";

/**
 * Receives an answer piece by piece. Text, refusals, reasoning and calls arrive in the order of the answer. Only the
 * arguments of several calls may be interleaved. `end` is called once, after all pieces. `usage` may be called at any
 * time and repeatedly, even after `end`.
 */
export interface ReplySink {
  /** Begins a new block, even if the last block has the same kind. A caller need not call `block`. */
  block(): void;
  /** Adds a piece of text. `logprobs` are the log-probabilities of this piece, in the form of chat completions. */
  text(text: string, logprobs?: readonly unknown[]): void;
  refusal(text: string): void;
  reasoning(text: string, isSummary: boolean): void;
  /** Ends the reasoning so far with its proof. Reasoning may consist of only a proof. */
  proof(proof: ReasoningProof): void;
  /** Begins a call. `index` identifies the call within the answer. The arguments of the call follow. */
  call(index: number, call: ReplyCall): void;
  arguments(index: number, text: string): void;
  usage(usage: ReplyUsage): void;
  end(end: ReplyEnd): void;
}

export interface ReplyCall {
  readonly callId: string;
  readonly kind: CallKind;
  readonly name: string;
  readonly namespace?: string | undefined;
  /** Id of the answer's item that holds the call, if the format has such an id. */
  readonly id?: string | undefined;
}

export interface ReplyEnd {
  /**
   * The values mean: stop: the answer is complete; sequence: the model generated the stop text `sequence`; calls: the
   * client must call tools; length: the answer reached the token limit; context: the model's context is full; filter:
   * the server withheld the content; refusal: the model refused; pause: the model continues in the next request.
   */
  readonly reason: "stop" | "sequence" | "calls" | "length" | "context" | "filter" | "refusal" | "pause";
  readonly sequence?: string | undefined;
  /** Tells the client that a quota ended the answer, or that other model servers continued it. */
  readonly mark?: AnswerMark | undefined;
}

/** The figures that the model server reported. A figure is undefined if it was not reported. */
export interface ReplyUsage {
  /** Number of tokens in the whole prompt, including cached ones. */
  readonly promptTokens?: number | undefined;
  /** Number of tokens that were read from the prompt cache, and number of tokens that were written to it. */
  readonly cachedTokens?: number | undefined;
  readonly cacheWriteTokens?: number | undefined;
  /** Number of tokens in the whole answer, including reasoning. */
  readonly completionTokens?: number | undefined;
  readonly reasoningTokens?: number | undefined;
  /** Figures that few servers report. */
  readonly details?: UsageDetails | undefined;
  /** True if these figures are final, even if the answer failed and so has no end. */
  readonly isFinal?: boolean | undefined;
}

/**
 * Reads the answers of a model server. Throws `upstream_error` for data that is no answer in this format. If a stream
 * contains an error, `fault` returns it.
 */
export interface ReplyReader {
  /** True after the last event that the format defines. */
  readonly isOver: boolean;
  /** Reads the data of one stream event, parsed as JSON. */
  event(data: Readonly<Record<string, unknown>>, sink: ReplySink): void;
  /**
   * Reports whether the event is a part of an answer. Returns false for a heartbeat, or for an event of another format.
   */
  isPart(data: Readonly<Record<string, unknown>>): boolean;
  /** Reads a whole answer, parsed as JSON. */
  whole(answer: Readonly<Record<string, unknown>>, sink: ReplySink): void;
  /**
   * Called if a stream ends with an event that is not JSON (`[DONE]`). Calls `end` unless the answer has already ended.
   * Only formats whose servers may leave out the finish reason have this function.
   */
  done?(sink: ReplySink): void;
  /**
   * Returns the text of an event that contains only the next piece of text. Events with other texts then have the same
   * form. Returns undefined for all other events. Formats with numbered events do not have this function.
   */
  plainText?(data: Readonly<Record<string, unknown>>): string | undefined;
}

/** Names and figures that the beginning of an answer contains. */
export interface ReplyHead {
  readonly id: string;
  /** Public id of the model that serves the request. */
  readonly model: string;
  /** Creation time of the answer in Unix seconds. */
  readonly created: number;
  /** Returns the current time in Unix seconds. Only formats that report the completion time need this function. */
  nowSeconds?(): number;
  /** Number of prompt tokens, estimated or counted. Some formats begin an answer with this figure. */
  readonly promptTokens: number;
  /** The client's request, parsed. Some formats repeat parts of the request in the answer. */
  readonly request: Readonly<Record<string, unknown>>;
  /** Members of the answer that the gateway sets itself: see `AnswerNames`. */
  readonly members?: OwnMembers | undefined;
  readonly seal: Seal;
}

/**
 * The form of further events while a text is open. Only the part before the new text may differ from event to event.
 */
export interface TextEvents {
  /**
   * The end of each event, after the new text. The new text is written as in a JSON string, without the quotes. `after`
   * is byte text, like all output.
   */
  readonly after: string;
  /** Returns the next event up to the place of its piece of text. That piece must not be empty. */
  next(): string;
  /**
   * Receives a copy of the text of all events that were written in this form, concatenated. Undefined if the writer
   * does not need the text.
   */
  took?(text: string): void;
}

/** Writes an answer for a client. Events are complete Server-Sent Events, including the blank line. */
export interface ReplyWriter extends ReplySink {
  /** Returns the output for the pieces that arrived since the last call, or "" if there is none. */
  take(): string;
  /**
   * Returns the form of further text events, or undefined if no text is open or the form is unknown. The form is valid
   * until the writer receives anything except text.
   */
  textEvents(): TextEvents | undefined;
  /** Returns the last events. `usage` holds the final figures. Before this function, `end` must be called. */
  ending(usage: ReplyUsage): string;
  /** Returns the last event of a stream that an error interrupted. */
  failure(error: ReplyFault): string;
  /** Returns the whole answer, made of all pieces, for a client that did not ask for a stream. */
  whole(usage: ReplyUsage): Record<string, unknown>;
}

/** An error in the form that a client may see. */
export interface ReplyFault {
  /** HTTP status of the error response. Used if no answer has begun. */
  readonly status: number;
  /** Error code of the gateway or of a model server, such as `context_length_exceeded`. */
  readonly code: string;
  readonly message: string;
  readonly param?: string | undefined;
  readonly requestId?: string | undefined;
}
