// A streamed answer in the client's format, of an engine that speaks another.
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import { decodeByteText, encodeByteText } from "../../base/bytes/byte-text.ts";
import type { GatewayError } from "../../base/errors.ts";
import { maskKeys } from "../../domain/api-key.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { AnswerNames, AnswerStream, AskedRequest, Serving } from "../answer.ts";
import type { ReplyReader, ReplyUsage, ReplyWriter } from "../conversation/reply.ts";
import { toldCode } from "../engine-fault.ts";
import { streamUsage } from "../stream-usage.ts";
import { CountedReply, usageOf } from "./counted-reply.ts";
import { parsedAnswer } from "./engine-answer.ts";
import { headOf, type Translation } from "./translation.ts";

/** What ends a stream of chat completions; those of the other formats end with an event of theirs. */
const endMark = "[DONE]";

export class TranslatedStream implements AnswerStream {
  readonly #request: AskedRequest;
  readonly #serving: Serving;
  readonly #reader: ReplyReader;
  readonly #writer: ReplyWriter;
  readonly #reply: CountedReply;
  readonly #errorEvent: Translation["errorEvent"];

  constructor(request: AskedRequest, names: AnswerNames, serving: Serving, translation: Translation) {
    this.#request = request;
    this.#serving = serving;
    this.#errorEvent = translation.errorEvent;
    this.#reader = translation.from.reader(translation.names, serving.deployment.engine);
    this.#writer = translation.to.writer(headOf(request, names, serving, translation));
    this.#reply = new CountedReply(this.#writer);
    this.#reply.context = serving.model.context;
  }

  get reported(): TokenUsage | undefined {
    return this.#reply.reported;
  }

  /** What was told of usage, the latest of each figure. */
  get told(): ReplyUsage {
    return this.#reply.told;
  }

  get deliveredBytes(): number {
    return this.#reply.deliveredBytes;
  }

  get deliveredPieces(): number {
    return this.#reply.deliveredPieces;
  }

  get context(): number | undefined {
    return this.#reply.context;
  }

  get finishSeen(): boolean {
    return this.#reply.ended !== undefined;
  }

  servedBy(): void {}

  takeInPlace(): undefined {
    return undefined;
  }

  takeAlike(): string {
    return "";
  }

  isEnd(data: string): boolean {
    if (data !== endMark) return false;
    this.#reader.done?.(this.#reply);
    // The formats that do not end so have to have ended by an event: else what came is a part of an answer.
    return this.finishSeen;
  }

  translate(data: string): string {
    const event = parsedAnswer(decodeByteText(data), this.#serving);
    this.#serving.trace?.chunk(event);
    this.#reader.event(event, this.#reply);
    return encodeByteText(this.#writer.take());
  }

  whole(bytes: ByteSpan): string {
    this.#serving.trace?.answer(bytes);
    this.#reader.whole(parsedAnswer(bytes.text, this.#serving), this.#reply);
    return encodeByteText(this.#writer.take());
  }

  ending(): string {
    const counted = streamUsage(this.#request, this, true);
    return encodeByteText(this.#writer.ending(usageOf(counted, this.#reply.told)));
  }

  errorEvent(rendered: string, error: GatewayError): string {
    const { message, param } = error;
    const known = this.#errorEvent?.(rendered);
    const fault = { status: 502, code: toldCode(error), message: maskKeys(message), param };
    return encodeByteText(known ?? this.#writer.failure(fault));
  }
}
