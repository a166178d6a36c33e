// Answers in any format: what a dialect needs to read an answer, and the result.
import type { ByteSpan, Bytes } from "../../base/bytes/byte-span.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { GatewayError } from "../../base/errors.ts";
import type { SseReader } from "../../base/text/sse.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";

/** The part of a wire format that reading answers needs; `Dialect` has the rest. */
export interface AnswerFormat {
  /** Name of the request member that holds the prompt. */
  readonly promptMember: string;
  /** True if the prompt is a list of messages with roles; false if it is one or more texts or token lists. */
  readonly isConversation: boolean;
  /** True if answers are generated token by token; only such answers can be streamed and limited. */
  readonly generates: boolean;
  /** The member of an answer that lists its results, and the `object` names of a whole answer and of a chunk. */
  readonly answerList: string;
  readonly answerObject: string;
  readonly chunkObject: string;
  /**
   * Bytes of one item of an answer that is not generated token by token; 0 if items are no larger than an embedding.
   */
  readonly itemBytes: number;
  /**
   * Converts the items of an answer to the requested encoding, in place, and reports whether an item changed. Throws
   * `upstream_error` for an item that cannot be converted.
   */
  encode(items: unknown[], request: AskedRequest): boolean;
}

/** The facts of a request that its answer depends on. */
export interface AskedRequest {
  readonly dialect: AnswerFormat;
  /** Public id of the requested model. */
  readonly model: string;
  /** Bytes of the request body. */
  readonly bodyBytes: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** Estimated from the text of the prompt. */
  readonly promptTokens: number;
  /** Maximum number of tokens of each generation; undefined if the request sets no limit. */
  readonly maxCompletionTokens: number | undefined;
  /** Number of parallel generations. */
  readonly width: number;
  /** True if the request has images, audio or files, whose token counts do not follow from the text. */
  readonly hasMedia: boolean;
  /**
   * `none` if the request has no `stream_options`, `usage` if they ask for usage, and `other` for any other options.
   */
  readonly streamOptions: "none" | "usage" | "other";
}

/** The model that serves the request, or its fallback, with the deployment. */
export interface Serving {
  readonly model: Pick<Model, "id" | "context">;
  readonly deployment: Pick<Deployment, "engine">;
  readonly trace?: Pick<RequestTrace, "answer" | "chunk"> | undefined;
}

/**
 * Members of an answer that the gateway may set. The model server's own id stands unless it is missing or must be
 * unique here.
 */
export interface AnswerNames {
  id: string;
  /** Creation time of the answer in Unix seconds. */
  created: number;
  /** True if `id` replaces the model server's id. */
  ownId: boolean;
  /** The current time in Unix seconds; if absent, an answer is dated at its beginning. */
  nowSeconds?(): number;
  /** The further members that the gateway sets on every answer, such as `store` and `previous_response_id`. */
  readonly members?: OwnMembers | undefined;
  /** Receives the delivered text; set if another server may continue the stream. */
  readonly said?: SaidListener | undefined;
  /** True if a quota may end the answer, so that its content must be tracked. */
  readonly mayBeStopped?: boolean | undefined;
}

/** Tells a client that a quota ended the answer: the member `headrace` beside the finish reason. */
export interface StopMark {
  readonly stopped_by: "quota";
  readonly quota: Readonly<Record<string, unknown>>;
}

/** The member `headrace` beside the finish reason: why the answer ended, or how often another server continued it. */
export interface AnswerMark extends Partial<StopMark> {
  /** Number of times that another server continued after a server broke off. */
  readonly continued?: number | undefined;
}

/** Receives the delivered parts of a stream, so that another server can continue from there. */
export interface SaidListener {
  /**
   * Prompt tokens as counted by each continuing server: first those of the request, then those including the partial
   * answer.
   */
  readonly countedPrompts: readonly (number | undefined)[];
  text(text: string): void;
  /**
   * Called for reasoning. Throws if a server that should continue a text sends reasoning: it has started the answer
   * over.
   */
  thought(): void;
  /** Called for anything except plain text: a call, a refusal or log-probabilities. */
  other(): void;
}

/** The part of an answer before its server broke off and another server continued. */
export interface CutPart {
  readonly reported: TokenUsage | undefined;
  readonly deliveredBytes: number;
  readonly deliveredPieces: number;
}

export type OwnMembers = Readonly<Record<string, unknown>>;

/** Stored response and conversation that a request continues from, as far as the request names them. */
export interface GoesOnFrom {
  /** Id of the preceding response. */
  readonly previousId: string | null;
  readonly conversationId: string | null;
}

/** Describes how answers of a format are collected and marked for storage. */
export interface KeptAnswers {
  readonly as: "chat" | "response";
  /** True if the collector needs every event of a stream; false if the last events repeat the whole answer. */
  readonly ofAllEvents: boolean;
  collector(): AnswerCollector;
  /** Returns the members by which an answer tells how it is stored, such as `store` and `previous_response_id`. */
  members(isKept: boolean, from: GoesOnFrom | undefined): OwnMembers | undefined;
  /**
   * Changes a whole answer, or the last events of its stream, to say that the answer is not stored. Takes text or byte
   * text.
   */
  unkept(answer: string): string;
}

/** A whole answer in the form that the client expects. */
export interface Answer {
  /** Bytes to send: those of the model server, unless something had to change. */
  readonly body: Bytes | string;
  /** The body as text, decoded on demand. */
  readonly text: string;
  readonly usage: TokenUsage;
}

/** Observations of a stream, from which tokens are counted when the request is settled. */
export interface StreamObservation {
  /** Usage that the current server reported last. */
  readonly reported: TokenUsage | undefined;
  /**
   * Prompt tokens and their parts that the server reported at the beginning of the stream; absent if it reported none.
   */
  readonly reportedPrompt?: Pick<TokenUsage, "promptTokens" | "parts"> | undefined;
  /** UTF-8 bytes of delivered text, and the number of pieces. */
  deliveredBytes: number;
  deliveredPieces: number;
  /**
   * The finished parts of the answer, in order, and the counted prompts of all parts; absent if no server broke off.
   */
  cut?: readonly CutPart[] | undefined;
  countedPrompts?: SaidListener["countedPrompts"] | undefined;
  /** Context of the serving model in tokens, if known. */
  context?: number | undefined;
  /** True if the answer has reported its finish reason; absent if unknown. */
  readonly finishSeen?: boolean;
  /** Returns the usage so far, if the format reports it in events and delivered text does not show it. */
  usageSoFar?(): TokenUsage | undefined;
}

/**
 * A streamed answer: converts the model server's events for the client, and counts tokens. Events are byte text
 * (base/bytes/byte-text.ts). Data that is no event of the format throws `upstream_error`.
 */
export interface AnswerStream extends StreamObservation {
  /** True if the answer has reported its finish reason. */
  readonly finishSeen: boolean;
  /** True if some choice may still continue because it has not reported its finish reason. */
  readonly isOpen: boolean;
  /** True if a choice began that has not reported its finish reason; absent if answers have one choice. */
  readonly isUnfinished?: boolean;
  /** True after the last event of the format, so that nothing of the answer follows. */
  readonly isOver: boolean;
  /** Called before the first event. */
  servedBy(serving: Serving): void;
  /**
   * Counts the event that `bytes` holds from `start` to `end`, if its form is known, and returns the way to send it.
   * Returns undefined if the event must be read as text.
   */
  takeInPlace(bytes: Buffer, start: number, end: number): PlacedEvent | undefined;
  /**
   * Returns the output for the next events as far as their form is known; empty if the next event must be translated.
   */
  takeAlike(reader: SseReader): string;
  /** Reports whether the data of an event only marks the end of the stream. */
  isEnd(data: string): boolean;
  /**
   * Returns the event for the client, or an empty text. `data` is the model server's data, and `raw` the whole event if
   * it arrived in one piece.
   */
  translate(data: string, raw: string | undefined): string;
  /** Returns events for an answer that arrived whole, because some servers ignore `stream`. */
  whole(bytes: ByteSpan): string;
  /** Returns the last events for a stream that was delivered completely. */
  ending(): string;
  /**
   * Returns the last events for a stream that is stopped here, as if by a limit on its tokens. `mark` is undefined if
   * the client's own limit applies.
   */
  stopped(mark: StopMark | undefined): string;
  /**
   * Returns the last event of a stream that broke off. `rendered` is the error as JSON, in the form of the client's
   * API.
   */
  errorEvent(rendered: string, error: GatewayError): string;
}

/** An event that is sent directly from the buffer in which it arrived. */
export interface PlacedEvent {
  /** Returns the result of `ClientStream.write`. */
  send(client: ClientStream, bytes: Buffer, start: number, end: number): boolean;
}

/** Collects one whole answer from the events of a stream, in the client's format. */
export interface AnswerCollector {
  /** The approximate length of the answer as JSON, in characters. */
  readonly size: number;
  /** Adds the text of one or more events. Throws for invalid JSON. */
  add(events: string): void;
  /** Returns the whole answer; undefined if none began. `usage` is used if the stream reported no usage. */
  answer(usage: TokenUsage): Record<string, unknown> | undefined;
}
