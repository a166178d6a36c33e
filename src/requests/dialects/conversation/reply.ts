// A model's answer, in no format in particular, as it comes: the reader of one format tells it, the writer of another writes it.

import type { Seal } from "../../../domain/seal.ts";
import type { UsageDetails } from "../../../domain/usage/usage-parts.ts";
import type { AnswerMark, OwnMembers } from "../answer.ts";
import type { CallKind, ReasoningProof } from "./conversation.ts";

/**
 * Is told of an answer piece by piece. Text, refusals, reasoning and calls come in the order in which they stand in the
 * answer; only the arguments of calls may come side by side. `end` comes once, last but for `usage`, which may come at any
 * time, and again.
 */
export interface ReplySink {
  /** A new block of the kind that comes next begins, though the last may have been of it as well. Need not be told. */
  block(): void;
  /** `logprobs`: as chat completions have them, for this piece. */
  text(text: string, logprobs?: readonly unknown[]): void;
  refusal(text: string): void;
  reasoning(text: string, isSummary: boolean): void;
  /** The reasoning so far is whole, and this is its proof. Reasoning may consist of that alone. */
  proof(proof: ReasoningProof): void;
  /** A call begins. `index` tells it from others of this answer; its arguments follow. */
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
  /** The item's own id, where the format has one. */
  readonly id?: string | undefined;
}

export interface ReplyEnd {
  /**
   * stop: it said all; sequence: the stop text `sequence` came; calls: tools are to be called; length: the token limit;
   * context: the model's context is full; filter: its content was withheld; refusal: the model would not; pause: it goes
   * on when it is asked again.
   */
  readonly reason: "stop" | "sequence" | "calls" | "length" | "context" | "filter" | "refusal" | "pause";
  readonly sequence?: string | undefined;
  /** What the client is told of a quota that has ended it, and of servers that went on. */
  readonly mark?: AnswerMark | undefined;
}

/** Undefined: not told. */
export interface ReplyUsage {
  /** All of the prompt, what was cached included. */
  readonly promptTokens?: number | undefined;
  /** Those that were read from and written to the cache of prompts. */
  readonly cachedTokens?: number | undefined;
  readonly cacheWriteTokens?: number | undefined;
  /** All of the answer, reasoning included. */
  readonly completionTokens?: number | undefined;
  readonly reasoningTokens?: number | undefined;
  /** What few servers tell. */
  readonly details?: UsageDetails | undefined;
  /** It is of all that there will be, also where the answer failed and has no end. */
  readonly isFinal?: boolean | undefined;
}

/**
 * Reads the answers of an engine. What is no answer of the format throws `upstream_error`; an error that the engine tells
 * in the stream is returned by `fault`.
 */
export interface ReplyReader {
  /** True if the last event of the format came. */
  readonly isOver: boolean;
  /** The data of one event of a stream, parsed. */
  event(data: Readonly<Record<string, unknown>>, sink: ReplySink): void;
  /** Reports whether the event is a part of an answer. A heartbeat, and an event of another format, are none. */
  isPart(data: Readonly<Record<string, unknown>>): boolean;
  /** A whole answer, parsed. */
  whole(answer: Readonly<Record<string, unknown>>, sink: ReplySink): void;
  /**
   * The stream ended as the format has it, by an event that is no JSON (`[DONE]`): tells `end` where nothing did. For formats
   * whose servers may leave out why they ended.
   */
  done?(sink: ReplySink): void;
  /**
   * The text of an event that tells nothing but the next piece of it, and would be read alike with any other text that is
   * not empty in its place; undefined of all others. Left out for formats whose events have a number each.
   */
  plainText?(data: Readonly<Record<string, unknown>>): string | undefined;
}

/** Names and figures that an answer begins with. */
export interface ReplyHead {
  readonly id: string;
  /** Public id of the model that serves. */
  readonly model: string;
  /** Unix seconds. */
  readonly created: number;
  /** Unix seconds of the moment, for formats that tell when an answer was whole; left out: it is not told. */
  nowSeconds?(): number;
  /** An estimate or a count of the prompt's tokens, for formats that tell it first. */
  readonly promptTokens: number;
  /** The client's request, parsed: some formats repeat parts of it. */
  readonly request: Readonly<Record<string, unknown>>;
  /** Members of the answer that the gateway answers for: see `AnswerNames`. */
  readonly members?: OwnMembers | undefined;
  readonly seal: Seal;
}

/** The events of further pieces of a text that is open: all that may differ stands before the piece. */
export interface TextEvents {
  /** What stands behind the piece, which is a JSON string without its quotes; byte text, as all that is sent. */
  readonly after: string;
  /** What stands before the next piece, which is not empty. */
  next(): string;
  /** Takes the text of such pieces, one behind the other; it is in memory of its own. Left out where nobody needs it again. */
  took?(text: string): void;
}

/** Writes an answer for a client. Events are the whole text of Server-Sent Events, blank line included. */
export interface ReplyWriter extends ReplySink {
  /** What the client gets of what was told since the last call; "" where there is nothing to send yet. */
  take(): string;
  /** Undefined where no text is open, or it is not known how the next piece of it is written. To be used until anything else is told. */
  textEvents(): TextEvents | undefined;
  /** The last events; `usage` is what counts. `end` was told before. */
  ending(usage: ReplyUsage): string;
  /** The last event of a stream that broke off. */
  failure(error: ReplyFault): string;
  /** All that was told as a whole answer: for a client that asked for no stream. */
  whole(usage: ReplyUsage): Record<string, unknown>;
}

/** An error as a client may know it. */
export interface ReplyFault {
  /** Status that it would have had before the answer began. */
  readonly status: number;
  /** A code of ours or of an engine: `context_length_exceeded`. */
  readonly code: string;
  readonly message: string;
  readonly param?: string | undefined;
  readonly requestId?: string | undefined;
}
