// A streamed answer in the client's API format, from a model server that uses another format.
import type { ByteSpan } from "../../../base/bytes/byte-span.ts";
import { decodeByteText, encodeByteText } from "../../../base/bytes/byte-text.ts";
import type { GatewayError } from "../../../base/errors.ts";
import type { SseReader } from "../../../base/text/sse.ts";
import { maskKeys } from "../../../domain/api-key.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import { TemplateTrials } from "../alike-events.ts";
import type { AnswerNames, AnswerStream, AskedRequest, CutPart, SaidListener, Serving, StopMark } from "../answer.ts";
import type { ReplyReader, ReplyUsage, ReplyWriter } from "../conversation/reply.ts";
import { isEndMark } from "../end-mark.ts";
import { reportedCode } from "../engine-fault.ts";
import { streamUsage } from "../stream-usage.ts";
import { CountedReply, usageOf } from "./counted-reply.ts";
import { type Json, parsedAnswer } from "./engine-answer.ts";
import { TextTemplate } from "./text-template.ts";
import { headOf, type Translation } from "./translation.ts";

export class TranslatedStream implements AnswerStream {
  readonly #request: AskedRequest;
  #serving: Serving;
  #reader: ReplyReader;
  readonly #writer: ReplyWriter;
  readonly #reply: CountedReply;
  readonly #errorEvent: Translation["errorEvent"];
  readonly #trials = new TemplateTrials();
  #template: TextTemplate | undefined;
  #hasBegun = false;
  readonly #said: SaidListener | undefined;

  constructor(request: AskedRequest, names: AnswerNames, serving: Serving, translation: Translation) {
    this.#request = request;
    this.#serving = serving;
    this.#errorEvent = translation.errorEvent;
    this.#reader = translation.from.reader(translation.names, serving.deployment.engine);
    this.#writer = translation.to.writer(headOf(request, names, serving, translation));
    this.#reply = new CountedReply(this.#writer, names.said);
    this.#said = names.said;
    this.#reply.context = serving.model.context;
  }

  get reported(): TokenUsage | undefined {
    return this.#reply.reported;
  }

  get reportedPrompt(): AnswerStream["reportedPrompt"] {
    return this.#reply.reportedPrompt;
  }

  /** The reported usage, with the latest value of each figure. */
  get reportedUsage(): ReplyUsage {
    return this.#reply.reportedUsage;
  }

  get deliveredBytes(): number {
    return this.#reply.deliveredBytes;
  }

  get deliveredPieces(): number {
    return this.#reply.deliveredPieces;
  }

  get cut(): readonly CutPart[] | undefined {
    return this.#reply.cut;
  }

  get countedPrompts(): SaidListener["countedPrompts"] | undefined {
    return this.#reply.countedPrompts;
  }

  get context(): number | undefined {
    return this.#reply.context;
  }

  get finishSeen(): boolean {
    return this.#reply.ended !== undefined;
  }

  get isOpen(): boolean {
    return !this.finishSeen;
  }

  get isOver(): boolean {
    return this.#reader.isOver;
  }

  servedBy(): void {}

  /**
   * Starts to read from another server that continues the answer. The format of this server may differ from the
   * previous server's.
   */
  goOn(serving: Serving, translation: Translation): void {
    this.#serving = serving;
    this.#reader = translation.from.reader(translation.names, serving.deployment.engine);
    this.#template = undefined;
    this.#reply.goOn();
  }

  takeInPlace(bytes: Buffer, start: number, end: number): TextTemplate | undefined {
    const template = this.#template;
    if (!template?.takeInPlace(bytes, start, end, this.#reply)) return undefined;
    this.#trials.spared(1);
    return template;
  }

  takeAlike(reader: SseReader): string {
    const template = this.#template;
    if (!template || !reader.betweenEvents) return "";
    const { deliveredPieces } = this.#reply;
    const events = template.take(reader, this.#reply, this.#said);
    this.#trials.spared(this.#reply.deliveredPieces - deliveredPieces);
    return events;
  }

  isEnd(data: string): boolean {
    if (!isEndMark(data)) return false;
    // If no part of an answer has arrived, the end mark cannot complete the answer.
    if (!this.#hasBegun && !this.finishSeen) return true;
    this.#reader.done?.(this.#reply);
    // If a format has no end mark, `[DONE]` counts as one only after an event has ended the answer. Otherwise it is
    // data.
    return this.finishSeen;
  }

  translate(data: string, raw: string | undefined): string {
    const event = parsedAnswer(decodeByteText(data), this.#serving);
    this.#serving.trace?.chunk(event);
    // The template is dropped, because it is valid only until the writer receives anything except text.
    this.#template = undefined;
    this.#reader.event(event, this.#reply);
    // A heartbeat is not a part of the answer, so it must not make the writer begin the answer.
    this.#hasBegun ||= this.#reader.isPart(event);
    if (!this.#hasBegun) return "";
    const events = encodeByteText(this.#writer.take());
    if (raw !== undefined && this.#trials.hasTrials) this.#template = this.#templateOf(event, data, raw);
    return events;
  }

  /** Returns a template for events like the one that was just translated. */
  #templateOf(event: Json, data: string, raw: string): TextTemplate | undefined {
    const text = this.#reader.plainText?.(event);
    const pieces = this.#writer.textEvents();
    if (text === undefined || !pieces) return undefined;
    this.#trials.take();
    return TextTemplate.of({ text, data, raw }, this.#reader, pieces);
  }

  whole(bytes: ByteSpan): string {
    this.#serving.trace?.answer(bytes);
    this.#reader.whole(parsedAnswer(bytes.text, this.#serving), this.#reply);
    return encodeByteText(this.#writer.take());
  }

  ending(): string {
    return this.#ending(true);
  }

  stopped(mark: StopMark | undefined): string {
    const { cut } = this.#reply;
    // The end goes directly to the writer and not through `CountedReply`, because the server has not reported its final
    // figures.
    this.#writer.end({ reason: "length", mark: cut ? { ...mark, continued: cut.length } : mark });
    return this.#ending(false);
  }

  #ending(isWhole: boolean): string {
    const counted = streamUsage(this.#request, this, isWhole);
    // The reported figures are only those of the last server.
    const reported = this.#reply.cut ? { ...counted.parts, details: undefined } : this.#reply.reportedUsage;
    return encodeByteText(this.#writer.ending(usageOf(counted, reported)));
  }

  errorEvent(rendered: string, error: GatewayError): string {
    const { message, param } = error;
    const known = this.#errorEvent?.(rendered);
    const fault = { status: 502, code: reportedCode(error), message: maskKeys(message), param };
    return encodeByteText(known ?? this.#writer.failure(fault));
  }
}
