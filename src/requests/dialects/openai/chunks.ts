// Converts each chunk that a model server streams to the form that the client expects, and counts the tokens.

import type { ByteSpan } from "../../../base/bytes/byte-span.ts";
import { decodeByteText, encodeByteText } from "../../../base/bytes/byte-text.ts";
import { GatewayError } from "../../../base/errors.ts";
import { stringEnd } from "../../../base/text/json-string.ts";
import { editObject, scanObject } from "../../../base/text/json-text.ts";
import type { SseReader } from "../../../base/text/sse.ts";
import type { TokenUsage } from "../../../domain/usage/usage.ts";
import { dataStart, frameOf, TemplateTrials } from "../alike-events.ts";
import type { AnswerNames, AnswerStream, AskedRequest, CutPart, SaidListener, Serving, StopMark } from "../answer.ts";
import { failedMidway, type Mended, requireNoFailure, StrictChoices } from "../chat/strict-choices.ts";
import { endMark, isEndMark } from "../end-mark.ts";
import { hasFault, reportedFault } from "../engine-fault.ts";
import { lastPart, streamUsage } from "../stream-usage.ts";
import { ChunkTemplate } from "./chunk-template.ts";
import {
  deliveredBytes,
  hasTotal,
  isOfOneChoice,
  reportedUsage,
  sumOfChoices,
  usageObject,
  withTotal,
} from "./usage.ts";
import { readAnswer } from "./whole-answer.ts";

interface Chunk {
  [member: string]: unknown;
  choices?: unknown;
}

interface StreamedChoice {
  index?: unknown;
  delta?: Record<string, unknown>;
  finish_reason?: unknown;
}

interface Rendered {
  /** Text of the event for the client. */
  event: string;
  /** True if the choices were rewritten. False if they stay as the model server wrote them. */
  rewritten: boolean;
}

const usageNull = ',"usage":null}';
/**
 * Matches texts that grow from chunk to chunk. The first such text that is not empty becomes the text of the template.
 */
const growing = /"(?:content|text|reasoning_content|reasoning|arguments)": ?"(?!")/;
const plainText = /^"(?:content|text)"/;
/**
 * Two texts for learning a template. One of them replaces the text of a chunk, to find the form of everything else in
 * the chunk.
 */
const probes = ["~headrace-text~", "~headrace-other-text~"] as const;

/** Returns a translator for a streamed answer in OpenAI's formats. */
export function streamChunks(request: AskedRequest, names: AnswerNames): AnswerStream {
  return new ChunkTranslator(request, names);
}

/**
 * Keeps the model server's bytes, except for the public model id, for members that every client expects, and for the
 * role in the first delta of each choice. Only a client that asked for usage gets it, in one last chunk.
 */
export class ChunkTranslator implements AnswerStream {
  reported: TokenUsage | undefined;
  deliveredBytes = 0;
  deliveredPieces = 0;
  finishSeen = false;
  isOver = false;
  /** Indices of the choices that have ended. A server may end a choice twice. */
  readonly #finished = new Set<unknown>();
  /** Indices of the choices that have begun but not ended. */
  readonly #unfinished = new Set<unknown>();
  /**
   * Finish reasons, by choice index, of choices whose calls have no arguments yet. The client gets these reasons at the
   * end.
   */
  #delayedReasons: Map<unknown, unknown> | undefined;
  /** True if the gateway ended the stream. Usage that is reported later does not apply to the whole answer. */
  #isStopped = false;
  cut: CutPart[] | undefined;
  readonly countedPrompts: SaidListener["countedPrompts"] | undefined;
  context: number | undefined;
  /** True if the next chunk is the first one of a server that continues an interrupted answer. */
  #goesOn = false;
  /** Public id of the model that serves the request. */
  #model: string;
  #serving: Serving | undefined;
  readonly #request: AskedRequest;
  readonly #names: AnswerNames;
  readonly #wantsUsage: boolean;
  #hasCalls = false;
  #strict: StrictChoices | undefined;
  /** Index of the choice that had the first delta. Usually this is the only choice. */
  #firstIndex: unknown;
  #otherIndices: Set<unknown> | undefined;
  #usageText: string | undefined;
  /** The usage of each choice, if the server reports them one by one. */
  readonly #ofChoices: TokenUsage[] = [];
  #lastChunk: { id: unknown; created: unknown } | undefined;
  #template: ChunkTemplate | undefined;
  readonly #trials = new TemplateTrials();

  constructor(request: AskedRequest, names: AnswerNames) {
    this.#model = request.model;
    this.#request = request;
    this.#names = names;
    this.#wantsUsage = request.streamOptions === "usage";
    this.countedPrompts = names.said?.countedPrompts;
  }

  servedBy(serving: Serving): void {
    this.#serving = serving;
    this.#model = serving.model.id;
    this.context = serving.model.context;
  }

  /** Starts to read from a server that continues an interrupted answer. For the client, this is still one answer. */
  goOn(serving: Serving): void {
    const part = lastPart(this);
    this.cut ??= [];
    this.cut.push(part);
    this.reported = undefined;
    this.#usageText = undefined;
    this.#serving = serving;
    this.#template = undefined;
    this.#goesOn = true;
  }

  /** True if fewer choices have ended than the request asked for. */
  get isOpen(): boolean {
    return this.#finished.size < this.#request.width;
  }

  takeInPlace(bytes: Buffer, start: number, end: number): ChunkTemplate | undefined {
    const template = this.#template;
    const { deliveredPieces } = this;
    if (!template?.takeInPlace(bytes, start, end, this)) return undefined;
    this.#trials.spared(this.deliveredPieces - deliveredPieces);
    return template;
  }

  /** Translates the next events that differ from the previous event only in their text. */
  takeAlike(reader: SseReader): string {
    const template = this.#template;
    if (!template || !reader.betweenEvents) return "";
    const { deliveredPieces } = this;
    const events = template.take(reader, this, this.#names.said);
    if (events !== "") this.#trials.spared(this.deliveredPieces - deliveredPieces);
    return events;
  }

  get isUnfinished(): boolean {
    return this.#unfinished.size > 0;
  }

  isEnd(data: string): boolean {
    return isEndMark(data);
  }

  translate(received: string, raw: string | undefined): string {
    const text = decodeByteText(received);
    const chunk = parseChunk(text);
    if (hasFault(chunk)) {
      throw reportedFault(text, this.#serving?.deployment.engine, failedMidway);
    }
    this.#serving?.trace?.chunk(chunk);
    const said = chunk["usage"] ?? vendorUsage(chunk);
    const usage = reportedUsage(said, chunk["service_tier"]);
    // A server that reports more often than it has choices reports sums.
    if (usage && this.#ofChoices.length < this.#request.width && this.#request.width > 1 && isOfOneChoice(chunk)) {
      this.#ofChoices.push(usage);
      this.reported = sumOfChoices(this.#ofChoices, this.#request);
      this.#usageText = JSON.stringify(usageObject(this.reported, this.#request.dialect));
    } else if (usage) {
      this.reported = usage;
      this.#usageText = JSON.stringify(hasTotal(said) ? said : withTotal(said, usage));
    }
    const { choices } = chunk;
    // A chunk without a choice causes errors in clients that did not ask for usage. The gateway writes the usage chunk
    // itself at the end.
    if (!Array.isArray(choices) || choices.length === 0) {
      // Some servers send no end mark after the usage, so the stream is over once the usage has arrived and all choices
      // have ended.
      this.isOver = usage !== undefined && !this.isOpen;
      return "";
    }
    let mended = this.#mend(choices);
    if (this.finishSeen && choices.every((choice, position) => this.#isRepeatedEnd(choice, position))) return "";
    this.#observe(choices);
    if (this.finishSeen && this.#holdReasons(choices)) mended = "once";
    if (!this.cut) this.#lastChunk = { id: chunk["id"], created: chunk["created"] };
    const { event } = this.#render(text, chunk, choices, mended !== "not");
    this.#template = undefined;
    const listener = this.#names.said;
    if (listener) for (const choice of choices) reportSaid(choice as Record<string, unknown>, listener);
    const isAlike = raw !== undefined && !usage && choices.length === 1 && mended !== "once";
    if (isAlike) this.#learn(received, raw, choices[0]);
    return encodeByteText(event);
  }

  /** Adds missing members to choices. Throws if the server reports that it gave up a choice. */
  #mend(choices: readonly unknown[]): Mended {
    if (!this.#request.dialect.isConversation) return "not";
    for (const choice of choices) requireNoFailure(choice, this.#serving?.deployment.engine);
    this.#strict ??= new StrictChoices(this.#names.id);
    return this.#strict.chunk(choices);
  }

  #isRepeatedEnd(choice: StreamedChoice | null, position: number): boolean {
    const isRepeated = choice?.finish_reason && this.#finished.has(choice.index ?? position);
    return isRepeated ? deliveredBytes(choice) === 0 : false;
  }

  #observe(choices: readonly unknown[]): void {
    for (let position = 0; position < choices.length; position++) {
      const choice = choices[position] as StreamedChoice | null;
      if (typeof choice !== "object" || choice === null) throw malformed("a choice that is no object");
      const bytes = deliveredBytes(choice);
      this.deliveredBytes += bytes;
      if (bytes > 0) this.deliveredPieces++;
      this.#hasCalls ||= choice.delta?.["tool_calls"] !== undefined;
      const index = choice.index ?? position;
      if (!choice.finish_reason) {
        if (!this.#finished.has(index)) this.#unfinished.add(index);
        continue;
      }
      this.finishSeen = true;
      this.#finished.add(index);
      this.#unfinished.delete(index);
    }
  }

  /**
   * Removes the finish reasons of choices whose calls have no arguments yet, and reports whether it removed any. Some
   * servers send a finish reason with each piece, so the arguments may still follow.
   */
  #holdReasons(choices: readonly unknown[]): boolean {
    let areDelayed = false;
    for (let position = 0; position < choices.length; position++) {
      const choice = choices[position] as StreamedChoice;
      const { finish_reason: reason, index = position } = choice;
      if (!reason) continue;
      this.#delayedReasons?.delete(index);
      if (!this.#strict?.lacksArguments(index, reason)) continue;
      this.#delayedReasons ??= new Map();
      this.#delayedReasons.set(index, reason);
      choice.finish_reason = null;
      areDelayed = true;
    }
    return areDelayed;
  }

  #render(text: string, chunk: Chunk, choices: unknown[], isMended: boolean): Rendered {
    // If JSON has several lines, it is written as one line, because some clients read line by line.
    const data = text.includes("\n") ? JSON.stringify(chunk) : this.#withoutUsageNull(text, chunk);
    const rewritten = this.#complete(choices) || isMended;
    const edits = this.#edits(chunk);
    if (rewritten) edits["choices"] = JSON.stringify(choices);
    return { event: `data: ${Object.keys(edits).length === 0 ? data : edited(data, edits)}\n\n`, rewritten };
  }

  /**
   * Cuts a null usage from the end of a chunk, without searching the chunk. If usage is requested, most servers write a
   * null usage in every chunk.
   */
  #withoutUsageNull(text: string, chunk: Chunk): string {
    if (this.#wantsUsage || chunk["usage"] !== null || !text.endsWith(usageNull)) return text;
    chunk["usage"] = undefined;
    return `${text.slice(0, -usageNull.length)}}`;
  }

  /**
   * Adds missing members to each choice: an index, a finish_reason (null until the last chunk), and the role in its
   * first delta. Reports whether anything was added.
   */
  #complete(choices: readonly unknown[]): boolean {
    let changed = false;
    for (let position = 0; position < choices.length; position++) {
      const choice = choices[position] as StreamedChoice;
      if (choice.finish_reason === undefined || choice.index === undefined) {
        choice.finish_reason ??= null;
        choice.index ??= position;
        changed = true;
      }
      const { delta, index } = choice;
      if (typeof delta !== "object" || delta === null) continue;
      if (this.cut && delta["role"] !== undefined) {
        const { role: _, ...others } = delta;
        choice.delta = others;
        changed = true;
      }
      if (!this.#isFirstOf(index)) continue;
      if (delta["role"] === undefined) {
        choice.delta = { role: "assistant", ...delta };
        changed = true;
      }
    }
    return changed;
  }

  /** Reports whether this is the first delta of the choice. */
  #isFirstOf(index: unknown): boolean {
    if (this.#firstIndex === undefined) {
      this.#firstIndex = index;
      return true;
    }
    if (this.#firstIndex === index || this.#otherIndices?.has(index)) return false;
    this.#otherIndices ??= new Set();
    this.#otherIndices.add(index);
    return true;
  }

  /**
   * Learns a template for chunks like this one. For this purpose, one JSON string is replaced by a probe. If the
   * delivered length changes by the difference in length, any other string would be delivered in the same way.
   */
  #learn(received: string, raw: string, choice: unknown): void {
    if (!this.#trials.hasTrials) return;
    const lead = dataStart(raw, received);
    if (lead < 0) return;
    const found = growing.exec(received);
    if (!found) return;
    const start = found.index + found[0].length;
    const end = stringEnd(received, start, { bytes: 0 });
    if (end < 0) return;
    this.#trials.take();
    const value: unknown = JSON.parse(decodeByteText(received.slice(start - 1, end + 1)));
    const bytes = deliveredBytes({ text: value });
    // The probe and the text must differ in length. Otherwise the delivered length could not show which string is the
    // text.
    const probe = bytes === probes[0].length ? probes[1] : probes[0];
    const text = decodeByteText(received.slice(0, start) + probe + received.slice(end));
    const chunk = parseChunk(text);
    const choices = chunk.choices as unknown[];
    const isMended = this.#mend(choices) !== "not";
    const otherBytes = deliveredBytes(choices[0]) - probe.length;
    if (bytes + otherBytes !== deliveredBytes(choice)) return;
    // A listener must get plain text of the answer, so with a listener only such texts may use a template.
    if (this.#names.said && (otherBytes > 0 || !plainText.test(found[0]))) return;
    const { event, rewritten } = this.#render(text, chunk, choices, isMended);
    const sent = encodeByteText(event);
    const at = sent.indexOf(probe);
    if (at < 0 || sent.includes(probe, at + 1)) return;
    this.#template = new ChunkTemplate(frameOf(raw, lead + start, lead + end), frameOf(sent, at, at + probe.length), {
      keepsEscapes: !rewritten,
      otherBytes,
    });
  }

  #edits(chunk: Chunk): Record<string, string | null> {
    const edits: Record<string, string | null> = {};
    if (chunk["model"] !== this.#model) edits["model"] = JSON.stringify(this.#model);
    if (this.cut) this.#keepHead(edits);
    else {
      if (this.#names.ownId || chunk["id"] === undefined) edits["id"] = JSON.stringify(this.#names.id);
      if (chunk["created"] === undefined) edits["created"] = String(this.#names.created);
    }
    if (chunk["object"] !== this.#objectName()) edits["object"] = JSON.stringify(this.#objectName());
    if (this.#wantsUsage) {
      if (chunk["usage"] !== null) edits["usage"] = "null";
    } else if (chunk["usage"] !== undefined) {
      edits["usage"] = null;
    }
    return edits;
  }

  /** The whole answer keeps the id and creation time of the first server. */
  #keepHead(edits: Record<string, string | null>): void {
    const { id, created } = this.#head();
    edits["id"] = JSON.stringify(id);
    edits["created"] = JSON.stringify(created);
    if (this.#goesOn) edits["headrace"] = JSON.stringify({ continued: this.cut?.length });
    this.#goesOn = false;
  }

  whole(bytes: ByteSpan): string {
    const { text } = readAnswer(bytes, this.#request, this.#serving as Serving, this.#names);
    return this.translate(encodeByteText(wholeAsChunk(text, this.#objectName())), undefined);
  }

  ending(): string {
    const reasons = [...(this.#delayedReasons ?? [])].map(([index, reason]) =>
      this.#lastOf([index], reason, undefined),
    );
    return `${reasons.join("")}${this.#missingReasons()}${this.#wantsUsage ? encodeByteText(this.#usageChunk()) : ""}data: ${endMark}\n\n`;
  }

  stopped(mark: StopMark | undefined): string {
    const open = Array.from({ length: this.#request.width }, (_, index) => index);
    const last = this.#lastOf(
      open.filter((index) => !this.#finished.has(index)),
      "length",
      mark,
    );
    this.#isStopped = true;
    return `${last}${this.ending()}`;
  }

  /**
   * Returns finish reasons for choices that have ended only because the end mark arrived. Clients treat a choice
   * without a finish reason as cut off.
   */
  #missingReasons(): string {
    if (this.#isStopped || this.deliveredPieces === 0) return "";
    const open = [...this.#unfinished];
    return open.length === 0 ? "" : this.#lastOf(open, this.#hasCalls ? "tool_calls" : "stop", undefined);
  }

  /** Returns the chunk that contains the finish reason of these choices. */
  #lastOf(indices: readonly unknown[], reason: unknown, mark: StopMark | undefined): string {
    const isWhole = reason !== "length";
    const said = (index: unknown) =>
      this.#request.dialect.isConversation
        ? { delta: (isWhole && this.#strict?.undeclaredArguments(index)) || {} }
        : { text: "" };
    const choices = indices.map((index) => ({ index, ...said(index), logprobs: null, finish_reason: reason }));
    const usage = this.#wantsUsage ? { usage: null } : {};
    const last = JSON.stringify({ ...this.#head(), choices, ...usage, ...(mark && { headrace: mark }) });
    return `data: ${encodeByteText(last)}\n\n`;
  }

  errorEvent(error: string): string {
    return `data: ${encodeByteText(error)}\n\n`;
  }

  #usageChunk(): string {
    const counted = streamUsage(this.#request, this, !this.#isStopped);
    const isReported = this.#usageText !== undefined && counted === this.reported;
    const usage = isReported ? this.#usageText : JSON.stringify(usageObject(counted, this.#request.dialect));
    const head = { ...this.#head(), choices: [] };
    return `data: ${JSON.stringify(head).slice(0, -1)},"usage":${usage}}\n\n`;
  }

  /** Returns the first members of a chunk that the gateway writes itself. */
  #head(): Record<string, unknown> {
    return {
      id: this.#names.ownId ? this.#names.id : (this.#lastChunk?.id ?? this.#names.id),
      object: this.#objectName(),
      created: this.#lastChunk?.created ?? this.#names.created,
      model: this.#model,
    };
  }

  #objectName(): string {
    return this.#request.dialect.chunkObject;
  }
}

/**
 * Reports what a piece of a choice contains. Pieces of all choices except the first also count as `other`, because a
 * server that continues an answer continues only the first choice.
 */
function reportSaid(choice: Record<string, unknown>, said: SaidListener): void {
  const { index = 0, delta, text, logprobs, finish_reason: _, ...others } = choice;
  const { role: __, content, reasoning_content, reasoning, ...beside } = (delta ?? {}) as Record<string, unknown>;
  if (isSaid(reasoning_content) || isSaid(reasoning)) said.thought();
  for (const piece of [content, text]) {
    if (typeof piece === "string") said.text(piece);
    else if (isSaid(piece)) said.other();
  }
  if (index !== 0 || isSaid(logprobs) || [...Object.values(others), ...Object.values(beside)].some(isSaid))
    said.other();
}

function isSaid(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "" && !(Array.isArray(value) && value.length === 0);
}

/** Writes a whole answer as a stream's only chunk. */
function wholeAsChunk(text: string, name: string): string {
  const { choices, object, ...rest } = JSON.parse(text) as { choices: Record<string, unknown>[]; object: string };
  const asDelta = ({ message, ...choice }: Record<string, unknown>) =>
    message ? { ...choice, delta: withIndices(message as Record<string, unknown>) } : choice;
  return JSON.stringify({ ...rest, object: name, choices: choices.map(asDelta) });
}

/**
 * Adds indices to the calls of a whole answer. In a stream, each piece of a call has an index, but whole calls have
 * none.
 */
function withIndices(message: Record<string, unknown>): Record<string, unknown> {
  const { tool_calls: calls } = message;
  if (!Array.isArray(calls)) return message;
  return { ...message, tool_calls: calls.map((call: object, index) => ({ index, ...call })) };
}

/** Returns the usage from Groq's own member, or from the first choice, where Moonshot writes it. */
function vendorUsage({ x_groq: own, choices }: Chunk): unknown {
  return memberOf(own, "usage") ?? (Array.isArray(choices) ? memberOf(choices[0], "usage") : undefined);
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Chunk)[name] : undefined;
}

function parseChunk(data: string): Chunk {
  try {
    const value: unknown = JSON.parse(data);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Chunk;
  } catch {
    // Invalid JSON is reported below, in the same way as a value that is no object.
  }
  throw malformed(`${data.length} characters`);
}

function edited(data: string, edits: Readonly<Record<string, string | null>>): string {
  try {
    return editObject(data, scanObject(data), edits);
  } catch {
    // The caught error may quote the answer, so the thrown error does not contain it.
    throw malformed("JSON that cannot be edited: a field appears twice, or there is too much of it");
  }
}

function malformed(detail: string): GatewayError {
  return new GatewayError("upstream_error", "The model server sent a malformed event.", { detail });
}
