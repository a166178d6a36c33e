// An answer in whichever format: what a dialect is given to read one, and what it makes of it.
import type { ByteSpan, Bytes } from "../../base/bytes/byte-span.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { GatewayError } from "../../base/errors.ts";
import type { SseReader } from "../../base/text/sse.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";

/** What of a wire format its answers depend on; see `Dialect` for the rest. */
export interface AnswerFormat {
  /** The member of a request that is the prompt. */
  readonly promptMember: string;
  /** Whether that is a conversation: messages, each of somebody. Else it is a text or several, or their tokens. */
  readonly isConversation: boolean;
  /** Whether an answer is generated token by token: only then it can be streamed, and limited. */
  readonly generates: boolean;
  /** The member of an answer that holds what was asked for, and the names of a whole answer and of a chunk. */
  readonly answerList: string;
  readonly answerObject: string;
  readonly chunkObject: string;
  /** Bytes of one item of an answer that is not generated token by token; 0: it is an embedding, or smaller. */
  readonly itemBytes: number;
  /**
   * Gives the items of an answer the encoding that the request asks for, in place; says whether it changed one. Throws
   * `upstream_error` where what is there cannot be what was asked for.
   */
  encode(items: unknown[], request: AskedRequest): boolean;
}

/** The request that is answered, as far as its answer depends on it. */
export interface AskedRequest {
  readonly dialect: AnswerFormat;
  /** Public id of the model that was asked for. */
  readonly model: string;
  /** Bytes of its body. */
  readonly bodyBytes: number;
  readonly body: Readonly<Record<string, unknown>>;
  /** Estimated from the text. */
  readonly promptTokens: number;
  /** The most tokens of each generation; undefined where the request sets no limit. */
  readonly maxCompletionTokens: number | undefined;
  /** Generations side by side. */
  readonly width: number;
  /** Whether it has images, audio or files, whose tokens the text does not tell. */
  readonly hasMedia: boolean;
  /** Whether there are options of a stream, and they ask for usage. */
  readonly streamOptions: "none" | "usage" | "other";
}

/** Who answers: the model that serves the request, or stands in, and its engine. */
export interface Serving {
  readonly model: Pick<Model, "id" | "context">;
  readonly deployment: Pick<Deployment, "engine">;
  readonly trace?: Pick<RequestTrace, "answer" | "chunk"> | undefined;
}

/** What of an answer may be ours: the engine's own stands unless it gave none, or the id has to be unique here. */
export interface AnswerNames {
  id: string;
  /** Unix seconds. */
  created: number;
  /** Whether `id` replaces the engine's. */
  ownId: boolean;
  /** Unix seconds of the moment; left out: answers were whole when they began. */
  nowSeconds?(): number;
  /** Other members that are ours to say, whoever made it: whether it is kept, and what it goes on from. */
  readonly members?: OwnMembers | undefined;
  /** Where another server may go on with it. */
  readonly said?: SaidListener | undefined;
  /** Whether a quota may end it: then what there is of it has to be known. */
  readonly mayBeStopped?: boolean | undefined;
}

/** What a client is told of an answer that a quota has ended: the member `headrace` of what tells why it ended. */
export interface StopMark {
  readonly stopped_by: "quota";
  readonly quota: Readonly<Record<string, unknown>>;
}

/** The member `headrace` of what tells why an answer ended, or that another server goes on with it. */
export interface AnswerMark extends Partial<StopMark> {
  /** How often another server went on where one broke off. */
  readonly continued?: number | undefined;
}

/** Told of what a stream delivers, so that another server can go on from there. */
export interface SaidListener {
  /** Tokens of prompts, as the servers that go on count them: of the request's own, and of each with the begin of the answer. */
  readonly countedPrompts: readonly (number | undefined)[];
  text(text: string): void;
  /** Throws where a server goes on with a text by a thought: it has not gone on, but begun anew. */
  thought(): void;
  /** Anything else that is no text alone: a call, a refusal, log-probabilities. */
  other(): void;
}

/** A part of an answer whose server broke off, and another went on. */
export interface CutPart {
  readonly reported: TokenUsage | undefined;
  readonly deliveredBytes: number;
  readonly deliveredPieces: number;
}

export type OwnMembers = Readonly<Record<string, unknown>>;

/** What of the things that are kept here a request goes on from, as far as it names them. */
export interface GoesOnFrom {
  /** Id of the response before it. */
  readonly previousId: string | null;
  readonly conversationId: string | null;
}

/** How answers of a format are kept. */
export interface KeptAnswers {
  readonly as: "chat" | "response";
  /** Whether all events of a stream have to be seen for that; else the last ones, which come with its end, tell all. */
  readonly ofAllEvents: boolean;
  collector(): AnswerCollector;
  /** See `AnswerNames.members`. */
  members(isKept: boolean, from: GoesOnFrom | undefined): OwnMembers | undefined;
  /** A whole answer, or the last events of its stream as text or byte text, changed to say that the answer is not kept. */
  unkept(answer: string): string;
}

/** A whole answer, as the client was promised it. */
export interface Answer {
  /** What to send: the engine's own bytes, unless something had to change. */
  readonly body: Bytes | string;
  /** The same; made when it is asked for. */
  readonly text: string;
  readonly usage: TokenUsage;
}

/** What was seen of a stream so far; what settlement counts. */
export interface StreamObservation {
  /** Usage as the engine that sends it now reported it last. */
  readonly reported: TokenUsage | undefined;
  /** The prompt and its parts, as the engine told them where the stream began; left out: it told none. */
  readonly toldPrompt?: Pick<TokenUsage, "promptTokens" | "parts"> | undefined;
  /** UTF-8 bytes of text delivered, and in how many pieces they came. */
  deliveredBytes: number;
  deliveredPieces: number;
  /** Parts of it that are over, in order, and the prompts of all of them as far as they were counted; left out: there are none. */
  cut?: readonly CutPart[] | undefined;
  countedPrompts?: SaidListener["countedPrompts"] | undefined;
  /** Context of the model that serves it, in tokens, where it is known. */
  context?: number | undefined;
  /** Whether the answer told why it ended; left out: nobody knows. */
  readonly finishSeen?: boolean;
  /** Its own account of what was used, where that is not counted in what was delivered of a text. */
  usageSoFar?(): TokenUsage | undefined;
}

/**
 * A streamed answer: makes of the engine's events what the client gets, and counts what passes. Events are byte text
 * (base/bytes/byte-text.ts). What of an engine's is no event of the format throws `upstream_error`.
 */
export interface AnswerStream extends StreamObservation {
  /** Whether the answer told why it ended. */
  readonly finishSeen: boolean;
  /** Whether more of the answer may come: not all of it told why it ended. */
  readonly isOpen: boolean;
  /** Reports whether a choice began that has not told why it ended; left out: answers have one choice. */
  readonly isUnfinished?: boolean;
  /** True if the last event of the format came, so that nothing of the answer follows. */
  readonly isOver: boolean;
  /** Called before the first event. */
  servedBy(serving: Serving): void;
  /**
   * Counts the event that is `bytes` from `start` to `end`, if it is known what becomes of it. Gives what is to send it
   * then; nothing where it has to be read as text.
   */
  takeInPlace(bytes: Buffer, start: number, end: number): PlacedEvent | undefined;
  /** What the client gets of the events that are next, as far as that is known; nothing where the next is to be translated. */
  takeAlike(reader: SseReader): string;
  /** Whether the data of an event says that the stream is over, and nothing else. */
  isEnd(data: string): boolean;
  /** The event for the client, or nothing; `data` is the engine's, and `raw` the whole event where it came in one piece. */
  translate(data: string, raw: string | undefined): string;
  /** The events of an answer that came whole, as some servers ignore that a stream was asked for. */
  whole(bytes: ByteSpan): string;
  /** What the client gets at the end of a stream that was delivered whole. */
  ending(): string;
  /**
   * What the client gets at the end of a stream that ends here, as a limit on its tokens would have ended it. `mark`: undefined
   * where that is the client's own.
   */
  stopped(mark: StopMark | undefined): string;
  /** The last event of a stream that broke off; `rendered` is the error as JSON, in the form of the client's API. */
  errorEvent(rendered: string, error: GatewayError): string;
}

/** An event that goes to the client from where it lies. */
export interface PlacedEvent {
  /** See `ClientStream.write` for what it returns. */
  send(client: ClientStream, bytes: Buffer, start: number, end: number): boolean;
}

/** Makes one whole answer of the events of a stream, as they go to the client. */
export interface AnswerCollector {
  /** About how many characters the answer has as JSON. */
  readonly size: number;
  /** Text of one or more events. Throws where it is not JSON. */
  add(events: string): void;
  /** Undefined where no answer began. `usage` is for a stream that did not show it. */
  answer(usage: TokenUsage): Record<string, unknown> | undefined;
}
