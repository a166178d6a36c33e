// A model's answer in the neutral format, as it arrives: the reader of one format passes pieces to the writer of
// another.

import type { Seal } from "../../../domain/seal.ts";
import type { UsageDetails } from "../../../domain/usage/usage-parts.ts";
import type { AnswerMark, OwnMembers } from "../answer.ts";
import type { CallKind, ReasoningProof } from "./conversation.ts";

/**
 * Receives an answer piece by piece. Text, refusals, reasoning and calls arrive in the order of the answer; only the
 * arguments of calls may be interleaved. `end` is called once, last. `usage` may be called repeatedly at any time,
 * even after `end`.
 */
export interface ReplySink {
  /** Begins a new block, even if the last block has the same kind. Calling `block` is optional. */
  block(): void;
  /** Adds a piece of text. `logprobs` belongs to this piece, in the form of chat completions. */
  text(text: string, logprobs?: readonly unknown[]): void;
  refusal(text: string): void;
  reasoning(text: string, isSummary: boolean): void;
  /** Ends the reasoning so far with its proof. Reasoning may consist of a proof alone. */
  proof(proof: ReasoningProof): void;
  /** Begins a call. `index` distinguishes the call within the answer; its arguments follow. */
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
  /** Id of the call's item, if the format has one. */
  readonly id?: string | undefined;
}

export interface ReplyEnd {
  /**
   * stop: the answer is complete; sequence: the stop text `sequence` was generated; calls: the client must call
   * tools; length: the token limit was reached; context: the model's context is full; filter: the content was
   * withheld; refusal: the model refused; pause: the model continues in the next request.
   */
  readonly reason: "stop" | "sequence" | "calls" | "length" | "context" | "filter" | "refusal" | "pause";
  readonly sequence?: string | undefined;
  /** Tells the client that a quota ended the answer, or that other servers continued it. */
  readonly mark?: AnswerMark | undefined;
}

/** The reported figures; undefined if not reported. */
export interface ReplyUsage {
  /** Tokens of the whole prompt, including cached ones. */
  readonly promptTokens?: number | undefined;
  /** Tokens read from and written to the prompt cache. */
  readonly cachedTokens?: number | undefined;
  readonly cacheWriteTokens?: number | undefined;
  /** Tokens of the whole answer, reasoning included. */
  readonly completionTokens?: number | undefined;
  readonly reasoningTokens?: number | undefined;
  /** Figures that few servers report. */
  readonly details?: UsageDetails | undefined;
  /** True if the figures are final, even if the answer failed and has no end. */
  readonly isFinal?: boolean | undefined;
}

/**
 * Reads the answers of a model server. Throws `upstream_error` for data that is no answer of the format; `fault`
 * returns an error in the stream.
 */
export interface ReplyReader {
  /** True after the last event of the format. */
  readonly isOver: boolean;
  /** Reads the parsed data of one stream event. */
  event(data: Readonly<Record<string, unknown>>, sink: ReplySink): void;
  /** Reports whether the event is a part of an answer. Returns false for a heartbeat or an event of another format. */
  isPart(data: Readonly<Record<string, unknown>>): boolean;
  /** Reads a whole answer, parsed. */
  whole(answer: Readonly<Record<string, unknown>>, sink: ReplySink): void;
  /**
   * Called if a stream ends with an event that is not JSON (`[DONE]`). Calls `end` unless the answer has ended. For
   * formats whose servers may leave out the finish reason.
   */
  done?(sink: ReplySink): void;
  /**
   * Returns the text of an event that contains only the next piece of text, so that events with other texts have the
   * same form. Returns undefined for all other events. Absent for formats with numbered events.
   */
  plainText?(data: Readonly<Record<string, unknown>>): string | undefined;
}

/** Names and figures for the beginning of an answer. */
export interface ReplyHead {
  readonly id: string;
  /** Public id of the model that serves the request. */
  readonly model: string;
  /** Creation time of the answer in Unix seconds. */
  readonly created: number;
  /** The current time in Unix seconds, for formats that report the completion time; left out otherwise. */
  nowSeconds?(): number;
  /** Estimated or counted tokens of the prompt, for formats whose answers begin with this figure. */
  readonly promptTokens: number;
  /** The client's request, parsed: some formats repeat parts of it. */
  readonly request: Readonly<Record<string, unknown>>;
  /** Members of the answer that the gateway sets: see `AnswerNames`. */
  readonly members?: OwnMembers | undefined;
  readonly seal: Seal;
}

/** The form of further events for an open text. Only the part before the new text may differ between events. */
export interface TextEvents {
  /**
   * The end of each event, after the new text. The text is a JSON string without its quotes. In byte text, like all
   * output.
   */
  readonly after: string;
  /** Returns the next event up to its piece of text, which must not be empty. */
  next(): string;
  /**
   * Receives the concatenated text of events that were written in this form, as a copy. Absent if the writer does not
   * need the text.
   */
  took?(text: string): void;
}

/** Writes an answer for a client. Events are the whole text of Server-Sent Events, blank line included. */
export interface ReplyWriter extends ReplySink {
  /** Returns the output for the pieces received since the last call, or "". */
  take(): string;
  /**
   * Returns the form of further text events; undefined if no text is open or the form is unknown. The result is valid
   * until the writer receives anything except text.
   */
  textEvents(): TextEvents | undefined;
  /** Returns the last events. `usage` holds the final figures. Call `end` first. */
  ending(usage: ReplyUsage): string;
  /** Returns the last event of a stream that an error interrupts. */
  failure(error: ReplyFault): string;
  /** Returns a whole answer from all pieces, for a client that did not ask for a stream. */
  whole(usage: ReplyUsage): Record<string, unknown>;
}

/** An error as a client may see it. */
export interface ReplyFault {
  /** HTTP status of the error if no answer has begun. */
  readonly status: number;
  /** Code of the gateway or of a model server, such as `context_length_exceeded`. */
  readonly code: string;
  readonly message: string;
  readonly param?: string | undefined;
  readonly requestId?: string | undefined;
}
