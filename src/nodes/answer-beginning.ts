// Reads the beginning of an engine's successful response at a node, to check that the body is an answer and no error.
// The node checks this, because only the node can try its next engine.
import type { BodySink, BodySource } from "../base/bytes/body-source.ts";
import { ByteSpan, withoutMark } from "../base/bytes/byte-span.ts";
import { byteTextOf, decodeByteText } from "../base/bytes/byte-text.ts";
import type { Cancellation } from "../base/cancellation.ts";
import { SseReader } from "../base/text/sse.ts";
import { noAnswer } from "../inference/answer/engine-refusal.ts";
import type { Dispatched } from "../inference/routing/attempt.ts";
import { hasFault, reportedFault } from "../requests/dialects/engine-fault.ts";
import { isHeartbeat } from "../requests/dialects/keep-alive.ts";

/** Maximum bytes that are read ahead. If they contain no complete event, the body counts as an answer. */
const maxBeginning = 64 * 1024;
const failed = "The model server failed.";

/** The error of a successful response that is no answer. */
export class NoBeginning {
  readonly error: unknown;
  /** True if the body broke off, so that the engine may have worked. */
  readonly isCut: boolean;

  constructor(error: unknown, isCut: boolean) {
    this.error = error;
    this.isCut = isCut;
  }
}

/**
 * Reads the beginning of a response. Resolves to its whole body if it is an answer, otherwise to the error. Rejects if
 * cancelled.
 */
export function answerBeginning(dispatched: Dispatched, cancellation: Cancellation): Promise<BodySource | NoBeginning> {
  const { body } = dispatched.response;
  return new Promise((resolve, reject) => {
    const onCancel = () => {
      body.cancel();
      reject(cancellation.reason);
    };
    cancellation.onCancel(onCancel);
    if (cancellation.cancelled) return;
    const reader = new BeginningReader(dispatched);
    let isFirst = true;
    const begun = new BegunBody(body, (isEnd, fault) => {
      if (isFirst && !isEnd) dispatched.firstByte();
      isFirst = false;
      if (fault === undefined) {
        const verdict = reader.read(begun.bytes, isEnd);
        if (verdict === "unknown") return true;
        if (verdict !== "answer" && !isEnd) body.cancel();
        if (verdict === "answer") dispatched.answers();
        resolve(verdict === "answer" ? begun : new NoBeginning(verdict, false));
      } else {
        resolve(new NoBeginning(fault, true));
      }
      cancellation.off(onCancel);
      return false;
    });
    begun.begin();
  });
}

/** Reads the beginning of one answer. */
class BeginningReader {
  readonly #dispatched: Dispatched;

  constructor(dispatched: Dispatched) {
    this.#dispatched = dispatched;
  }

  /**
   * Checks the bytes that have arrived so far; `isEnd`: there are no more. Returns the error if the body is no answer.
   */
  read(bytes: ByteSpan, isEnd: boolean): "answer" | "unknown" | Error {
    const text = withoutMark(bytes).text.trimStart();
    if (text === "") return isEnd ? noAnswer("an empty body") : "unknown";
    if (/^<(?:!doctype|html)/i.test(text)) return noAnswer("an HTML page");
    if (text.startsWith("{") || text === "null") return this.#object(text, isEnd);
    if (/^(?::|(?:data|event|id|retry)(?::|\r|\n))/.test(text)) return this.#events(bytes, isEnd);
    return !isEnd && /^(?:d|da|dat|e|ev|eve|even|i|r|re|ret|retr|n|nu|nul|<[^>]*)$/i.test(text) ? "unknown" : "answer";
  }

  #object(text: string, isEnd: boolean): "answer" | "unknown" | Error {
    if (!isEnd) return text.length > maxBeginning ? "answer" : "unknown";
    const answer = objectOf(text);
    if (!answer) return noAnswer("a body that is no JSON object");
    if (hasFault(answer, "data")) return this.#reportedFault(text);
    const { choices } = answer;
    return Array.isArray(choices) && choices.length === 0 ? noAnswer("an answer without a choice") : "answer";
  }

  #events(bytes: ByteSpan, isEnd: boolean): "answer" | "unknown" | Error {
    const reader = new SseReader();
    reader.feed(byteTextOf(withoutMark(bytes)));
    for (let data = reader.next() ?? (isEnd ? reader.end() : undefined); data !== undefined; data = reader.next()) {
      const text = decodeByteText(data);
      if (isHeartbeat(reader.name, text)) continue;
      if (text.trim() === "[DONE]") return noAnswer("a stream without an event");
      const event = objectOf(text);
      return reader.name === "error" || (event && hasFault(event, "data")) ? this.#reportedFault(text) : "answer";
    }
    if (isEnd) return noAnswer("a stream without an event");
    return bytes.length > maxBeginning ? "answer" : "unknown";
  }

  #reportedFault(text: string): Error {
    return reportedFault(text, this.#dispatched.deployment.engine, failed);
  }
}

/** Parses a JSON object. Returns undefined for any other text. */
function objectOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** A body whose beginning was already read. */
class BegunBody implements BodySource {
  readonly #source: BodySource;
  /** Called after each piece and at the end. Returns true if more must be read ahead. */
  readonly #onMore: (isEnd: boolean, fault: unknown) => boolean;
  #pieces: ByteSpan[] = [];
  #readsAhead = true;
  #sink: BodySink | undefined;
  #end: { fault: unknown } | undefined;
  #isPaused = false;
  #isCancelled = false;

  constructor(source: BodySource, onMore: (isEnd: boolean, fault: unknown) => boolean) {
    this.#source = source;
    this.#onMore = onMore;
  }

  get bytes(): ByteSpan {
    return ByteSpan.joined(
      this.#pieces,
      this.#pieces.reduce((sum, piece) => sum + piece.length, 0),
    );
  }

  begin(): void {
    this.#source.flow({
      data: (bytes) => {
        if (this.#sink) {
          this.#sink.data(bytes);
          return;
        }
        this.#pieces.push(bytes);
        if (this.#readsAhead) this.#inspect(false);
      },
      end: () => this.#ended(undefined),
      fail: (fault) => this.#ended(fault ?? new Error("The body broke off.")),
    });
  }

  #inspect(isEnd: boolean, fault?: unknown): void {
    this.#readsAhead = this.#onMore(isEnd, fault);
    if (!this.#readsAhead && !isEnd) this.#source.pause();
  }

  #ended(fault: unknown): void {
    this.#end = { fault };
    if (this.#sink) this.#reportEnd(this.#sink);
    else if (this.#readsAhead) this.#inspect(true, fault);
  }

  #reportEnd(sink: BodySink): void {
    if (this.#end?.fault === undefined) sink.end();
    else sink.fail(this.#end.fault);
  }

  flow(sink: BodySink): void {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#sink = sink;
    for (const piece of pieces) if (!this.#isCancelled) sink.data(piece);
    if (this.#isCancelled) return;
    if (this.#end) this.#reportEnd(sink);
    else if (!this.#isPaused) this.#source.resume();
  }

  pause(): void {
    this.#isPaused = true;
    this.#source.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#source.resume();
  }

  cancel(): void {
    this.#isCancelled = true;
    this.#source.cancel();
  }
}
