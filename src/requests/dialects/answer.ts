// The types of answers in all formats: what is needed to read an answer, and the result.
import type { ByteSpan, Bytes } from "../../base/bytes/byte-span.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { GatewayError } from "../../base/errors.ts";
import type { SseReader } from "../../base/text/sse.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";

/** The part of a dialect that is needed to read answers. `Dialect` has the rest. */
export interface AnswerFormat {
  /** Name of the request member that contains the prompt. */
  readonly promptMember: string;
  /** True if the prompt is a list of messages with roles. False if it consists of texts or lists of tokens. */
  readonly isConversation: boolean;
  /** True if answers are generated token by token. Only such answers can be streamed and limited. */
  readonly generates: boolean;
  /**
   * The member of an answer that lists its results. The next two are the values of `object` in a whole answer and in a
   * chunk.
   */
  readonly answerList: string;
  readonly answerObject: string;
  readonly chunkObject: string;
  /** Bytes of one item of an answer that is not generated token by token. 0 if items are no larger than embeddings. */
  readonly itemBytes: number;
  /**
   * Converts the items of an answer to the requested encoding, and changes them in place. Returns whether an item
   * changed. Throws `upstream_error` if an item cannot be converted.
   */
  encode(items: unknown[], request: AskedRequest): boolean;
}

/** The facts about a request on which its answer depends. */
export interface AskedRequest {
  readonly dialect: AnswerFormat;
  /** Public id of the requested model. */
  readonly model: string;
  /** Bytes of the request body. */
  readonly bodyBytes: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** Number of prompt tokens, estimated from the text of the prompt. */
  readonly promptTokens: number;
  /** Maximum number of tokens of each generation. Undefined if the request sets no limit. */
  readonly maxCompletionTokens: number | undefined;
  /** Number of parallel generations. */
  readonly width: number;
  /** True if the request has images, audio or files. Their token counts cannot be derived from the text. */
  readonly hasMedia: boolean;
  /**
   * `none` if the request has no `stream_options`, `usage` if the options ask for usage, and `other` for any other
   * options.
   */
  readonly streamOptions: "none" | "usage" | "other";
}

/** The model that serves the request (the requested one or a fallback), and its deployment. */
export interface Serving {
  readonly model: Pick<Model, "id" | "context">;
  readonly deployment: Pick<Deployment, "engine">;
  readonly trace?: Pick<RequestTrace, "answer" | "chunk"> | undefined;
}

/**
 * Members of an answer that the gateway may set. The model server's own id is kept, unless it is missing or must be
 * unique.
 */
export interface AnswerNames {
  id: string;
  /** Creation time of the answer in Unix seconds. */
  created: number;
  /** True if `id` replaces the model server's id. */
  ownId: boolean;
  /** The current time in Unix seconds. If it is missing, an answer is dated at its beginning. */
  nowSeconds?(): number;
  /** Other members that the gateway sets in every answer, such as `store` and `previous_response_id`. */
  readonly members?: OwnMembers | undefined;
  /** Receives the delivered text. Set if another server may continue the stream. */
  readonly said?: SaidListener | undefined;
  /** True if a quota may end the answer early, so that its content must be tracked. */
  readonly mayBeStopped?: boolean | undefined;
}

/** The member `headrace`, next to the finish reason, which tells the client that a quota ended the answer. */
export interface StopMark {
  readonly stopped_by: "quota";
  readonly quota: Readonly<Record<string, unknown>>;
}

/**
 * The member `headrace`, next to the finish reason. It tells why the answer ended, or how often another server
 * continued it.
 */
export interface AnswerMark extends Partial<StopMark> {
  /** Number of times that another server continued the answer after one had broken off. */
  readonly continued?: number | undefined;
}

/** Receives the delivered parts of a stream, so that another server can continue the stream after them. */
export interface SaidListener {
  /**
   * Numbers of prompt tokens, as counted by the servers. The first is for the original request. The others include the
   * part of the answer that was delivered before.
   */
  readonly countedPrompts: readonly (number | undefined)[];
  text(text: string): void;
  /**
   * Called for reasoning. Throws if a server that should continue a text sends reasoning, because it has begun the
   * answer again.
   */
  thought(): void;
  /** Called for any part that is not plain text: a call, a refusal or log-probabilities. */
  other(): void;
}

/** The part of an answer before one server broke off and another one continued. */
export interface CutPart {
  readonly reported: TokenUsage | undefined;
  readonly deliveredBytes: number;
  readonly deliveredPieces: number;
}

export type OwnMembers = Readonly<Record<string, unknown>>;

/** The stored response or conversation that a request continues, if the request names one. */
export interface GoesOnFrom {
  /** Id of the preceding response, or null. */
  readonly previousId: string | null;
  readonly conversationId: string | null;
}

/** Describes how answers of a format are collected, and how they tell whether they are stored. */
export interface KeptAnswers {
  readonly as: "chat" | "response";
  /** True if the collector needs every event of a stream. False if the last events contain the whole answer. */
  readonly ofAllEvents: boolean;
  collector(): AnswerCollector;
  /** Returns the members with which an answer tells how it is stored, such as `store` and `previous_response_id`. */
  members(isKept: boolean, from: GoesOnFrom | undefined): OwnMembers | undefined;
  /**
   * Changes a whole answer, or the last events of its stream, so that it says that it is not stored. Accepts text or
   * byte text.
   */
  unkept(answer: string): string;
}

/** A whole answer in the format that the client expects. */
export interface Answer {
  /** The bytes to send. They are those of the model server, unless something had to be changed. */
  readonly body: Bytes | string;
  /** The body as text. Decoded when first needed. */
  readonly text: string;
  readonly usage: TokenUsage;
}

/** The observed facts about a stream, from which tokens are counted when the request is settled. */
export interface StreamObservation {
  /** The usage that the current server reported last. */
  readonly reported: TokenUsage | undefined;
  /**
   * Prompt tokens, and their parts, that the server reported at the beginning of the stream. Missing if it reported
   * none.
   */
  readonly reportedPrompt?: Pick<TokenUsage, "promptTokens" | "parts"> | undefined;
  /** Number of bytes of delivered text, in UTF-8. `deliveredPieces` is the number of pieces. */
  deliveredBytes: number;
  deliveredPieces: number;
  /** The finished parts of the answer, in order, if a server broke off. Missing if none did. */
  cut?: readonly CutPart[] | undefined;
  countedPrompts?: SaidListener["countedPrompts"] | undefined;
  /** Context length of the serving model in tokens, if known. */
  context?: number | undefined;
  /** True if the answer has reported its finish reason. Missing if this is unknown. */
  readonly finishSeen?: boolean;
  /** Returns the usage so far, if the format reports it in events and it cannot be derived from the delivered text. */
  usageSoFar?(): TokenUsage | undefined;
}

/**
 * A streamed answer. Converts the events of the model server for the client, and counts tokens. Events are byte text
 * (base/bytes/byte-text.ts). Throws `upstream_error` for data that is no event of the format.
 */
export interface AnswerStream extends StreamObservation {
  /** True if the answer has reported its finish reason. */
  readonly finishSeen: boolean;
  /** True if some choice has not reported its finish reason yet, so that it may continue. */
  readonly isOpen: boolean;
  /** True if a choice has begun that has not reported its finish reason. Missing if answers have only one choice. */
  readonly isUnfinished?: boolean;
  /** True after the last event of the format. Nothing of the answer follows then. */
  readonly isOver: boolean;
  /** Called before the first event, with the model and deployment that serve the request. */
  servedBy(serving: Serving): void;
  /**
   * Counts the event in `bytes` from `start` to `end` if it looks like an earlier one, and returns an object that sends
   * it. Returns undefined if the event must be read as text.
   */
  takeInPlace(bytes: Buffer, start: number, end: number): PlacedEvent | undefined;
  /**
   * Returns the output for the next events, as long as they look like earlier ones. Empty if the next event must be
   * translated.
   */
  takeAlike(reader: SseReader): string;
  /** Reports whether this data of an event only marks the end of the stream. */
  isEnd(data: string): boolean;
  /**
   * Returns the event for the client, or an empty text if there is none. `data` is the data of the model server's
   * event. `raw` is the whole event, if it arrived in one piece.
   */
  translate(data: string, raw: string | undefined): string;
  /** Returns the events for an answer that arrived as a whole. Needed because some servers ignore `stream`. */
  whole(bytes: ByteSpan): string;
  /** Returns the last events of a stream that was delivered completely. */
  ending(): string;
  /**
   * Returns the last events of a stream that is stopped now, in the same form as at a token limit. `mark` is undefined
   * if the limit is the client's own.
   */
  stopped(mark: StopMark | undefined): string;
  /**
   * Returns the last event of a stream that broke off. `rendered` is the error as JSON, in the format of the client's
   * API.
   */
  errorEvent(rendered: string, error: GatewayError): string;
}

/** An event that is sent directly from the buffer in which it has arrived. */
export interface PlacedEvent {
  /** Sends the event. Returns the result of `ClientStream.write`. */
  send(client: ClientStream, bytes: Buffer, start: number, end: number): boolean;
}

/** Collects the events of a stream, in the client's format, into one whole answer. */
export interface AnswerCollector {
  /** The approximate length of the answer's JSON in characters. */
  readonly size: number;
  /** Adds the text of one or more events. Throws if their JSON is invalid. */
  add(events: string): void;
  /** Returns the whole answer, or undefined if none has begun. `usage` is used if the stream reported no usage. */
  answer(usage: TokenUsage): Record<string, unknown> | undefined;
}
