// Forwards an answer to the client while it arrives: audio or other bytes, or a long JSON list.

import type { BodySink, BodySource } from "../../base/bytes/body-source.ts";
import type { ByteSpan } from "../../base/bytes/byte-span.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import type { CancelListener } from "../../base/cancellation.ts";
import { type MaybePromise, whenSettled } from "../../base/deferred.ts";
import { BlamelessError, GatewayError } from "../../base/errors.ts";
import { noIndex } from "../../base/indexed-set.ts";
import type { TokenUsage } from "../../domain/usage/usage.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { publicFault, reportedFault } from "../../requests/dialects/engine-fault.ts";
import type { LongAnswer } from "../../requests/dialects/long-answer.ts";
import { usageOfTask } from "../../requests/dialects/task/task-usage.ts";
import type { PassedBytes } from "../call.ts";
import type { Dispatched } from "../routing/attempt.ts";
import type { Stoppable } from "../stopping.ts";
import { brokeOff, noAnswer } from "./engine-refusal.ts";
import type { RelayedRequest } from "./relayed-answer.ts";

/**
 * Milliseconds after which a client that reads nothing is cut off, because its request occupies a slot of the model.
 */
const stalledReaderMs = 60_000;
/**
 * Matches content types that are sent to the client unchanged. Others are replaced, so that a browser never shows a
 * model server's answer as a page. The whole header must match, because browsers use the last of several types.
 */
const passedTypes =
  /^(?:audio\/[\w.+-]+|text\/plain|text\/vtt|application\/(?:x-subrip|octet-stream))(?:[ \t]*;[ \t]*[\w-]+=(?:[\w.+-]+|"[\w.+, -]*"))*$/i;
const unknownType = "application/octet-stream";

/**
 * Matches content types that cannot be audio. Some frameworks set them by default, so the first bytes decide instead.
 */
const doubtfulSound = /^(?:text\/|application\/(?:[\w.-]+\+)?(?:xml|json|x-ndjson|jsonl)\b)/i;
/**
 * Number of bytes that are checked for audio. Audio has a control character or invalid UTF-8 among them, in its header
 * or its samples.
 */
const soundHeadBytes = 512;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they tell sound from text.
const control = /[\0-\x08\x0e-\x1f]/;
/**
 * Matches the content types of HTML pages. Servers such as whisper.cpp also set them for plain text, which does not
 * begin with `<`.
 */
const page = /^(?:text\/html|application\/xhtml\+xml)\b/i;
const openTag = 0x3c;
/** Matches the content types of event streams, which are wrong if the request asked for text. */
const events = /^(?:text\/event-stream|application\/(?:x-ndjson|jsonl))\b/i;
/**
 * Matches the beginning of an error in JSON, or of an event that contains one. Such an answer is an error, whatever its
 * content type.
 */
const faultText = /^\s*(?:(?:event:[^\n]*\n)?data:\s*)?\{\s*"(?:error|detail)"\s*:/;
const faultBytes = 256;
/** Matches the beginning of JSON, or of an event that contains JSON. */
const jsonText = /^\s*(?:(?:event:[^\n]*\n)?data:\s*)?[{[]/;
/**
 * Matches the content types of text. With these, an empty answer is valid: it is the transcript of a recording without
 * speech.
 */
const emptyText = /^(?:text\/|application\/x-subrip\b)/i;

/**
 * Forwards an answer to the client. The answer to the client begins with the first byte, so until then another
 * deployment can be tried.
 */
export function passTo(dispatched: Dispatched, open: RelayedRequest, long?: LongAnswer): void {
  new Passing(dispatched, open, long).start();
}

class Passing implements BodySink, CancelListener, Stoppable, PassedBytes {
  setIndex = noIndex;
  readonly contentType: string;
  #client: ClientStream | undefined;
  readonly #dispatched: Dispatched;
  readonly #open: RelayedRequest;
  readonly #source: BodySource;
  readonly #isLong: boolean;
  readonly #usageSoFar: () => TokenUsage;
  /** Bytes that arrived before the client's stream was open. */
  #early: Buffer[] = [];
  #bytes = 0;
  #hasBegun = false;
  #isOver = false;
  #isRecorded = false;
  #error: unknown;
  /** The timer that cuts the client off. Set while the client is slow. */
  #stalled: ReturnType<typeof setTimeout> | undefined;

  /** `long` is set if the answer is a JSON list. It transforms the list. */
  constructor(dispatched: Dispatched, open: RelayedRequest, long?: LongAnswer) {
    const said = dispatched.response.headers.get("content-type") ?? unknownType;
    const isTrusted = passedTypes.test(said) && (open.request.answersText || !doubtfulSound.test(said));
    this.contentType = long ? "application/json" : isTrusted ? said : unknownType;
    this.#dispatched = dispatched;
    this.#open = open;
    this.#source = long ?? dispatched.response.body;
    this.#isLong = long !== undefined;
    this.#usageSoFar = long ? () => long.usage : () => usageAsAsked(open.request, this.#bytes);
  }

  start(): void {
    // Until the answer begins, only the request is told that the client has left. It then cancels this object too.
    this.#open.cancellation.onCancel(this);
    if (!this.#isOver) this.#source.flow(this);
  }

  begin(client: ClientStream): void {
    this.#client = client;
    client.onDrain = () => this.#caughtUp();
    const early = this.#early;
    this.#early = [];
    for (const bytes of early) this.#write(bytes, 0, bytes.length);
    if (this.#isRecorded) this.recorded();
  }

  data({ buffer, start, end }: ByteSpan): void {
    this.piece(buffer, start, end);
  }

  piece(bytes: Buffer, start: number, end: number): void {
    if (this.#isOver || start === end) return;
    if (!this.#hasBegun) this.#begins(bytes.subarray(start, end));
    if (this.#isOver) return;
    this.#bytes += end - start;
    // Records the progress in the ledger. If the process dies now, the ledger shows a request that was being answered.
    this.#open.meter.delivered(this.#open.promptTokens, this.#usageSoFar);
    if (this.#client) this.#write(bytes, start, end);
    else this.#early.push(Buffer.from(bytes.subarray(start, end)));
  }

  /**
   * Begins the answer to the client, unless the first bytes show that the engine sent an error. `first` is empty for an
   * empty text.
   */
  #begins(first: Buffer): void {
    const { call, deps, trace, cancellation, request } = this.#open;
    const { headers } = this.#dispatched.response;
    const type = headers.get("content-type") ?? "";
    if (!this.#isLong && (isFault(first) || (request.answersText ? isNoText : isNoSound)(type, first))) {
      this.#noAnswer(this.#faultIn(first, type), false);
      return;
    }
    this.#hasBegun = true;
    this.#dispatched.firstByte();
    trace?.firstToken();
    cancellation.off(this);
    call.clientGone.off(this.#open);
    deps.stopping.remove(this.#open);
    this.#open.answers(this.#dispatched);
    call.clientGone.onCancel(this);
    if (!this.#isOver) deps.stopping.add(this);
    this.#open.begins(this);
  }

  /**
   * Returns the error that the engine sent. Text that is not JSON is shown only to operators, because it may be a stack
   * trace.
   */
  #faultIn(first: Buffer, type: string): GatewayError {
    const { engine } = this.#dispatched.deployment;
    const text = first.toString();
    const what = `bytes of the type ${type.slice(0, 64)}`;
    if (jsonText.test(text)) {
      const { message, detail } = noAnswer(what);
      return reportedFault(text, engine, message, detail);
    }
    const said = publicFault(text, engine).message;
    return noAnswer(said === undefined ? what : `${what}: ${said}`);
  }

  get #mayBeEmpty(): boolean {
    const { status, headers } = this.#dispatched.response;
    return this.#open.request.answersText && status === 200 && emptyText.test(headers.get("content-type") ?? "");
  }

  #write(bytes: Buffer, start: number, end: number): void {
    if (!this.#client?.writeAround("", bytes, start, end, "") && !this.#isOver) this.#fellBehind();
  }

  /**
   * Returns the request to the router. The router may try another deployment, because the client has received nothing.
   */
  #noAnswer(error: unknown, isCut: boolean): void {
    this.#isOver = true;
    this.#open.cancellation.off(this);
    this.#source.cancel();
    this.#open.noAnswer(error, isCut);
  }

  end(): void {
    if (this.#isOver) return;
    if (!this.#hasBegun && this.#mayBeEmpty) this.#begins(Buffer.alloc(0));
    if (this.#hasBegun) this.#finish(undefined);
    else this.#noAnswer(noAnswer("an empty body"), false);
  }

  fail(error: unknown): void {
    if (this.#isOver) return;
    const shown = error instanceof GatewayError ? error : brokeOff(error, this.#dispatched.deployment.engine);
    if (this.#hasBegun) this.#finish(shown);
    else this.#noAnswer(shown, true);
  }

  /** Called when the client has left, or when it is cut off. */
  cancelled(): void {
    if (!this.#hasBegun) {
      this.#noAnswer(this.#open.cancellation.reason, true);
      return;
    }
    const { reason } = this.#open.call.clientGone;
    this.#stop(reason instanceof GatewayError ? reason : new DOMException("The client left", "AbortError"));
  }

  get caller(): Stoppable["caller"] {
    return this.#open.caller;
  }

  stop(error: GatewayError): void {
    this.#stop(error);
  }

  #stop(error: unknown): void {
    if (this.#isOver) return;
    this.#source.cancel();
    this.#finish(error);
  }

  #fellBehind(): void {
    if (this.#stalled !== undefined) return;
    this.#source.pause();
    this.#stalled = setTimeout(
      () => this.#stop(new DOMException("The client stopped reading", "AbortError")),
      stalledReaderMs,
    );
  }

  #caughtUp(): void {
    if (this.#isOver || this.#stalled === undefined) return;
    clearTimeout(this.#stalled);
    this.#stalled = undefined;
    this.#source.resume();
  }

  /**
   * Records the end, and then ends the client's answer. If the engine's answer broke off, the connection to the client
   * is closed.
   */
  #finish(error: unknown): void {
    const { call, deps, cancellation } = this.#open;
    this.#isOver = true;
    this.#error = error;
    clearTimeout(this.#stalled);
    call.clientGone.off(this);
    deps.stopping.remove(this);
    if (error !== undefined) cancellation.cancel();
    this.#dispatched.done(error instanceof GatewayError && !(error instanceof BlamelessError), undefined, error);
    whenSettled(this.#recorded(error), onRecorded, onRecorded, this);
  }

  /** Records the end. If recording fails, the client's answer must still be ended. */
  #recorded(error: unknown): MaybePromise<void> {
    try {
      return this.#open.ended(this.#usageSoFar(), error);
    } catch (fault) {
      return Promise.reject(fault);
    }
  }

  recorded(): void {
    this.#isRecorded = true;
    if (this.#error === undefined) this.#client?.end();
    else this.#client?.abort();
  }
}

function isFault(first: Buffer): boolean {
  return faultText.test(first.toString("utf8", 0, faultBytes));
}

/** Reports whether the answer is an HTML page or an event stream, although the request asked for text. */
function isNoText(type: string, first: Buffer): boolean {
  return events.test(type) || (page.test(type) && first[0] === openTag);
}

/** Reports whether the answer is text, although the request asked for audio. */
function isNoSound(type: string, first: Buffer): boolean {
  if (!doubtfulSound.test(type)) return false;
  try {
    const head = first.subarray(0, soundHeadBytes);
    return !control.test(new TextDecoder("utf-8", { fatal: true }).decode(head, { stream: true }));
  } catch {
    return false;
  }
}

function onRecorded(_: unknown, passing: Passing): void {
  passing.recorded();
}

/** Returns the token usage for an answer that does not report it. It is computed from the request. */
function usageAsAsked(request: DecodedRequest, bytes: number): TokenUsage {
  return usageOfTask(undefined, request.units, request, { bytes: request.answersText ? bytes : 0, tokens: 0 });
}
