// Forwards a stream of events from an engine to the client. Reads the token usage and the end of the answer, and sends
// keep-alives.

import type { BodySink } from "../../base/bytes/body-source.ts";
import { ByteSpan, withoutMark } from "../../base/bytes/byte-span.ts";
import { byteTextOf, decodeByteText } from "../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import { type CancelListener, Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import { Deferred, type MaybePromise, whenSettled } from "../../base/deferred.ts";
import { BlamelessError, GatewayError } from "../../base/errors.ts";
import { noIndex } from "../../base/indexed-set.ts";
import { SseReader } from "../../base/text/sse.ts";
import { EngineFault } from "../../domain/models/engine.ts";
import type { AnswerStream, Serving } from "../../requests/dialects/answer.ts";
import { reportedFault } from "../../requests/dialects/engine-fault.ts";
import { comment, isHeartbeat, queuedComment } from "../../requests/dialects/keep-alive.ts";
import { ChunkTranslator } from "../../requests/dialects/openai/chunks.ts";
import { GuardedStream } from "../../requests/dialects/texts/guarded-stream.ts";
import { isStream } from "../../requests/dialects/translation/translated-answer.ts";
import { TranslatedStream } from "../../requests/dialects/translation/translated-stream.ts";
import type { Continuation } from "../continuation/continuation.ts";
import type { Dispatched } from "../routing/attempt.ts";
import type { Stoppable } from "../stopping.ts";
import { WholeBody } from "./answer-body.ts";
import { brokeOff, isOfEngine, noAnswer } from "./engine-refusal.ts";
import type { PieceDue, RelayOptions, StreamStop } from "./relay-options.ts";

/**
 * Matches the first byte that is no white space or byte-order mark. A `{` begins a complete answer instead of events.
 */
const telling = /[^\xef\xbb\xbf\s]/;
const jsonType = /^application\/(?:[\w.-]+\+)?json\b/i;
/** Limits on reading the rest of a response after the stream has ended, so that the connection can be reused. */
const drainMs = 1_000;
const maxDrainedBytes = 64 * 1024;
/**
 * Milliseconds after the finish reason in which the usage and the end mark may arrive. A server sends them immediately
 * or never.
 */
const endGraceMs = 1_000;
/**
 * Limits on received bytes that yield no event for the client, such as comments: a burst, and a rate per second.
 * Keep-alives need a few hundred bytes a second. A far higher rate would only waste CPU.
 */
const idleBytesAtOnce = 256 * 1024;
const idleBytesPerSecond = 16 * 1024;
/**
 * Bytes of an incomplete event up to which it is not counted on the memory account, because most network reads end
 * within an event.
 */
const countedEventBytes = 64 * 1024;
/**
 * Milliseconds after which a client that reads nothing is cut off, because its request occupies a slot of the model.
 */
const stalledReaderMs = 60_000;

/**
 * Forwards the engine's stream. If `client` is undefined, the client's stream is requested once there is something to
 * send: the first event, or a comment after long silence. Until the first event is sent, another engine may answer
 * instead. Reading from the engine pauses while the client is slow. An error is sent as the last event. May call
 * `onEnd` before it returns.
 */
export function relay(options: RelayOptions, client?: ClientStream): void {
  new Relay(options, client).start();
}

class Relay implements BodySink, CancelListener, Stoppable, PieceDue {
  setIndex = noIndex;
  dueMs = Number.NEGATIVE_INFINITY;
  duePieces = 0;
  readonly #options: RelayOptions;
  readonly #clock: Pick<Clock, "monotonicMs">;
  readonly #recorded: boolean;
  readonly #stop: StreamStop | undefined;
  /** The client's stream. Undefined until the answer begins. */
  #client: ClientStream | undefined;
  /** Output from before the client's stream was available. `#isAskedFor` is true once that stream was requested. */
  #early = "";
  #isAskedFor: boolean;
  #reader: SseReader;
  #chunks: AnswerStream;
  /** The same stream as `#chunks`, if guardrails are applied to it. Otherwise undefined. */
  #guarded: GuardedStream | undefined;
  #dispatched: Dispatched | undefined;
  /** The error of the model server that last broke off, after which another server was tried. */
  #broken: unknown;
  /** Cancels reading a complete answer, which the server sent instead of a stream. */
  #whole: Cancellation | undefined;
  /**
   * Input that has arrived while a quota check or guardrails are pending. Undefined if no check is pending.
   * `#endsBuffered` is true if the input has ended too.
   */
  #buffered: string | undefined;
  #endsBuffered = false;
  /** Time in monotonic milliseconds at which the stream counts as complete even without an end mark. */
  #endDueMs: number | undefined;
  /** True if the input has ended and guardrails are still checking its last part. */
  #isEnding = false;
  #firstByteSeen = false;
  /** True once it is known whether the server sends events or one complete answer. */
  #isFormKnown = false;
  /** The part of a complete answer that has arrived, if the server sends no events. Undefined if it sends events. */
  #object: string | undefined;
  /** True once an event was sent to the client. */
  #hasBegun = false;
  /** True if the current engine's output is known to be an answer. */
  #isProven = false;
  /** True if the next event may be forwarded directly from the received buffer, without conversion to text. */
  #atRest = false;
  #over = false;
  /**
   * Time in monotonic milliseconds of the last write to the client. `#behindSinceMs` is the time since which the client
   * has been slow.
   */
  #writtenAtMs: number;
  #behindSinceMs: number | undefined;
  /** One timer for all deadlines. It is not reset for each chunk: when it fires, all deadlines are checked. */
  #timer: ReturnType<typeof setTimeout> | undefined;
  /**
   * Bytes received since the last event for the client. `#idleSinceMs` is the time when the first of these bytes
   * arrived.
   */
  #idleBytes = 0;
  #idleSinceMs = 0;
  /** Bytes of an incomplete event that count on the memory account. */
  #countedBytes = 0;
  /** The last events. They are sent after the end of the request was recorded. */
  #last: string | undefined;
  #isRecorded = false;
  /** The error of a stream that ended before anything was sent to the client. */
  #fault: unknown;

  constructor(options: RelayOptions, client: ClientStream | undefined) {
    this.#options = options;
    this.#clock = options.clock;
    this.#writtenAtMs = options.sinceMs ?? options.clock.monotonicMs();
    this.#recorded = options.recorded;
    this.#reader = new SseReader(options.request.dialect.itemBytes);
    this.#stop = options.stop;
    this.#client = client;
    this.#isAskedFor = client !== undefined;
    this.#chunks = this.#reporting(options.request.dialect.stream(options.request, options.completion));
  }

  /** Wraps the stream so that guardrails check and change its text. */
  #reporting(stream: AnswerStream): AnswerStream {
    const { guard } = this.#options;
    if (guard === undefined) return stream;
    this.#guarded = new GuardedStream(stream, guard);
    return this.#guarded;
  }

  start(): void {
    const { source, clientGone, stopping, heartbeatMs } = this.#options;
    // If the answer begins before the engine responds, its headers are the first thing that the client receives.
    if (isWaitedFor(source)) this.#writtenAtMs = this.#clock.monotonicMs();
    const dueMs = this.#writtenAtMs + heartbeatMs - this.#clock.monotonicMs();
    this.#timer = setTimeout(onTimer, Math.min(Math.max(dueMs, 0), stalledReaderMs), this);
    clientGone.onCancel(this);
    if (!this.#over) stopping.add(this);
    if (isWaitedFor(source)) {
      // The client has already waited for long, so it gets its position in the queue immediately.
      const { queuePosition } = this.#options;
      if (!this.#over) this.#askForClient();
      if (queuePosition && !this.#over) this.#write(queuedComment(queuePosition));
      whenSettled(source, onSource, onNoSource, this);
    } else {
      this.begin(source);
    }
  }

  data(bytes: ByteSpan): void {
    if (this.#over) this.#drainMore(bytes.length);
    else this.#byteText(byteTextOf(bytes));
  }

  piece(bytes: Buffer, start: number, end: number): void {
    if (this.#over) {
      this.#drainMore(end - start);
      return;
    }
    // If `onPiece` or a quota check is due, the event is read the slower way.
    const stop = this.#stop;
    const mayStay =
      this.#atRest &&
      !this.#isDue(this.#chunks.deliveredPieces + 1) &&
      (stop === undefined || stop.isFar(this.#chunks, end - start));
    const template = mayStay ? this.#chunks.takeInPlace(bytes, start, end) : undefined;
    if (template) {
      this.#idleBytes = 0;
      this.#writtenAtMs = this.#clock.monotonicMs();
      this.#wrote(template.send(this.#client as ClientStream, bytes, start, end));
    } else {
      this.#byteText(bytes.toString("latin1", start, end));
    }
  }

  /** Reports whether `onPiece` must be called after this many delivered pieces. */
  #isDue(deliveredPieces: number): boolean {
    return deliveredPieces > this.duePieces || this.#clock.monotonicMs() >= this.dueMs;
  }

  #byteText(bytes: string): void {
    if (this.#buffered !== undefined) {
      this.#buffered += bytes;
      return;
    }
    if (!this.#firstByteSeen) {
      this.#firstByteSeen = true;
      this.#dispatched?.firstByte();
    }
    if (!this.#isFormKnown) {
      const start = bytes.search(telling);
      this.#isFormKnown = start >= 0;
      if (bytes[start] === "{") this.#object = "";
    }
    if (this.#object === undefined) this.#read(bytes);
    else this.#readObject(this.#object + bytes);
  }

  /** Stores the part of a complete answer that has arrived, although the server labelled it as a stream. */
  #readObject(bytes: string): void {
    this.#object = bytes;
    try {
      this.#countEvent(bytes.length);
    } catch (error) {
      this.#break(error, "");
    }
  }

  #endObject(bytes: string): void {
    try {
      this.#complete(this.#chunks.whole(ByteSpan.of(Buffer.from(bytes.slice(bytes.indexOf("{")), "latin1"))));
    } catch (error) {
      this.#break(error, "");
    }
  }

  /** Reads received bytes. If `bytes` is undefined, continues with earlier input after a check. */
  #read(bytes: string | undefined): void {
    const stop = this.#stop;
    const received = bytes?.length ?? 0;
    let events = "";
    let done = false;
    let verdict: ReturnType<StreamStop["check"]> = "goes_on";
    try {
      if (bytes !== undefined) this.#reader.feed(bytes);
      else if (this.#guarded) events = this.#guarded.taken();
      while (!done) {
        if (stop === undefined || stop.isFar(this.#chunks, received)) events += this.#chunks.takeAlike(this.#reader);
        else if (this.#chunks.isOpen) verdict = stop.check(this.#chunks);
        if (verdict !== "goes_on") break;
        const start = this.#reader.betweenEvents ? this.#reader.position : -1;
        const data = this.#reader.next();
        if (data === undefined) break;
        const isEmpty = events === "" && this.#isEmpty;
        if (this.#chunks.isEnd(data)) {
          done = true;
          if (isEmpty && this.#chunks.deliveredBytes === 0) throw emptyStream();
        } else {
          events += this.#translate(data, start);
          done = this.#chunks.isOver;
        }
        if (this.#guarded?.isDue && !done) {
          verdict = this.#guarded.ask();
          break;
        }
      }
      this.#checkIdle(received, events !== "");
      this.#countEvent(this.#reader.bufferedBytes + (this.#guarded?.bufferedBytes ?? 0));
      if (events !== "" && !this.#isProven) this.#proves();
      if (this.#over) return;
      if (!done && events !== "" && this.#isDue(this.#chunks.deliveredPieces)) {
        this.#options.onPiece(this.#chunks, this);
      }
    } catch (error) {
      this.#break(error, events);
      return;
    }
    if (verdict === "spent") {
      this.#stopHere(events);
      return;
    }
    if (done) {
      this.#complete(events);
    } else if (events !== "") {
      this.#hasBegun = true;
      this.#record(events);
      this.#write(events);
    }
    const isAnswered = this.#isAnswered;
    this.#atRest = !this.#recorded && this.#reader.atRest && this.#client !== undefined && !isAnswered;
    if (this.#over) return;
    if (verdict !== "goes_on") this.#hold(verdict);
    else if (isAnswered) this.#expectEnd(events !== "");
  }

  /** Reports whether no event of the answer has arrived yet. */
  get #isEmpty(): boolean {
    return !this.#hasBegun && !this.#chunks.finishSeen;
  }

  /**
   * Sets when the stream counts as complete. `hasMore` postpones this time, because some servers send a finish reason
   * with each piece.
   */
  #expectEnd(hasMore: boolean): void {
    if (this.#endDueMs !== undefined) {
      if (hasMore) this.#endDueMs = this.#clock.monotonicMs() + endGraceMs;
      return;
    }
    this.#endDueMs = this.#clock.monotonicMs() + endGraceMs;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(onTimer, endGraceMs, this);
  }

  /** Pauses the stream until a quota check or guardrails have finished. */
  #hold(until: Promise<void>): void {
    this.#buffered = "";
    this.#endDueMs = undefined;
    this.#dispatched?.response.body.pause();
    until.then(() => this.#goOn());
  }

  #goOn(): void {
    if (this.#over || this.#isEnding) return;
    const buffered = this.#buffered ?? "";
    this.#buffered = undefined;
    if (this.#behindSinceMs === undefined) this.#dispatched?.response.body.resume();
    this.#read(undefined);
    if (buffered !== "") this.#byteText(buffered);
    if (this.#endsBuffered && this.#buffered === undefined && !this.#over) this.end();
  }

  end(): void {
    if (this.#over) {
      this.#drained();
      return;
    }
    if (this.#buffered !== undefined) {
      this.#endsBuffered = true;
      return;
    }
    if (this.#object !== undefined) {
      this.#endObject(this.#object);
      return;
    }
    let events = "";
    try {
      const data = this.#reader.end();
      const isEmpty = this.#isEmpty;
      const isEnd = data !== undefined && this.#chunks.isEnd(data);
      if (isEnd && isEmpty && this.#chunks.deliveredBytes === 0) throw emptyStream();
      if (data !== undefined && !isEnd) events = this.#translate(data, -1);
      // After a finish reason, the stream may end without an end mark, because some servers send none.
      if (!isEnd && (!this.#chunks.finishSeen || this.#chunks.isUnfinished)) throw closedEarly();
    } catch (error) {
      this.#break(error, events, true);
      return;
    }
    this.#complete(events);
  }

  fail(error: unknown): void {
    if (!this.#over && this.#isAnswered) this.#completeCut("");
    else this.#failed(error);
  }

  #failed(error: unknown): void {
    if (this.#over) this.#drained();
    else if (!this.#isEnding) this.#break(error, "", true);
  }

  isFrom(dispatched: Dispatched): boolean {
    return this.#dispatched === dispatched;
  }

  failOf(dispatched: Dispatched, error: unknown): void {
    if (this.isFrom(dispatched)) this.fail(error);
  }

  /**
   * Handles the deadline that has passed: a keep-alive is due, the end mark is overdue, the client reads nothing, or
   * reading the rest took too long.
   */
  onTimer(): void {
    const nowMs = this.#clock.monotonicMs();
    let dueMs: number;
    if (this.#over) {
      this.#dispatched?.response.body.cancel();
      return;
    }
    if (this.#behindSinceMs === undefined) {
      const endDueMs = this.#endDueMs ?? Number.POSITIVE_INFINITY;
      // The timer may fire slightly before its time.
      if (nowMs > endDueMs - 1) {
        this.#complete("");
        return;
      }
      dueMs = this.#writtenAtMs + this.#options.heartbeatMs - nowMs;
      if (dueMs < 1) {
        // Before the answer has begun, only a comment can be sent to keep the connection alive.
        this.#write(this.#hasBegun ? this.#options.request.dialect.keepAlive : this.#comment());
        dueMs = this.#options.heartbeatMs;
      }
      dueMs = Math.min(dueMs, endDueMs - nowMs);
    } else {
      dueMs = this.#behindSinceMs + stalledReaderMs - nowMs;
      if (dueMs < 1) {
        this.#cutOff();
        return;
      }
    }
    // Writing may have ended the stream.
    if (!this.#over) this.#timer = setTimeout(onTimer, Math.min(dueMs, stalledReaderMs), this);
  }

  #comment(): string {
    const queuePosition = this.#dispatched ? undefined : this.#options.queuePosition;
    return queuePosition ? queuedComment(queuePosition) : comment;
  }

  begin(dispatched: Dispatched): void {
    const { response } = dispatched;
    if (this.#over) {
      // The response has arrived only after the client has left.
      dispatched.done(false);
      response.body.cancel();
      return;
    }
    this.#dispatched = dispatched;
    const { translation } = dispatched;
    const serving = this.#servingOf(dispatched);
    if (this.#isBegun) {
      this.#goOnBy(serving, translation);
    } else if (translation) {
      const { request, completion } = this.#options;
      this.#chunks = this.#reporting(new TranslatedStream(request, completion, serving, translation));
    } else {
      const { request, completion } = this.#options;
      if (this.#broken !== undefined) this.#chunks = this.#reporting(request.dialect.stream(request, completion));
      this.#chunks.servedBy(serving);
    }
    // Some servers ignore `stream: true` and send a complete answer. Some send errors with status 200.
    if (jsonType.test(response.headers.get("content-type") ?? "")) {
      this.#wholeAnswer(dispatched).catch((error) => {
        if (this.isFrom(dispatched)) this.#failed(error);
      });
      return;
    }
    const isOneOfSeveral = this.#options.continuation !== undefined || this.#broken !== undefined;
    response.body.flow(isOneOfSeveral ? new Part(this, dispatched) : this);
    const isBehind = this.#behindSinceMs !== undefined || this.#buffered !== undefined;
    if (isBehind && !this.#over) response.body.pause();
  }

  /**
   * Returns the model and the deployment that serve the stream. With guardrails the trace is left out, because it would
   * contain text that they remove.
   */
  #servingOf(dispatched: Dispatched): Serving {
    const { model, deployment } = dispatched;
    return this.#guarded ? { model, deployment } : dispatched;
  }

  /** Reports whether the client or the guardrails have received part of the answer. */
  get #isBegun(): boolean {
    return this.#hasBegun || (this.#guarded !== undefined && this.#guarded.deliveredBytes > 0);
  }

  /** Prepares the stream for another server, which continues the answer. */
  #goOnBy(serving: Serving, translation: Dispatched["translation"]): void {
    const chunks = this.#guarded?.inner ?? this.#chunks;
    if (translation && chunks instanceof TranslatedStream) chunks.goOn(serving, translation);
    else if (chunks instanceof ChunkTranslator) chunks.goOn(serving);
  }

  async #wholeAnswer(dispatched: Dispatched): Promise<void> {
    const { request, memoryAccount } = this.#options;
    this.#whole = new Cancellation();
    const whole = new WholeBody(dispatched, request, memoryAccount, this.#whole);
    const all = await whole;
    try {
      if (!this.#over && isStream(all)) this.#streamAtOnce(all, dispatched);
      else if (!this.#over) this.#complete(this.#chunks.whole(withoutMark(all)));
    } catch (error) {
      if (this.#over || !this.isFrom(dispatched)) throw error;
      this.#break(error, "");
    } finally {
      whole.release();
    }
  }

  /** Reads a stream of events that arrived completely, because the server labelled it as JSON. */
  #streamAtOnce(all: ByteSpan, dispatched: Dispatched): void {
    this.#byteText(byteTextOf(all));
    // If another server has taken over meanwhile, the end of this answer does not count.
    if (!this.#over && this.isFrom(dispatched)) this.end();
  }

  /** Throws if the engine sends too many bytes that yield no event for the client. */
  #checkIdle(receivedBytes: number, isOfUse: boolean): void {
    if (isOfUse) {
      this.#idleBytes = 0;
      return;
    }
    if (this.#idleBytes === 0) this.#idleSinceMs = this.#clock.monotonicMs();
    this.#idleBytes += receivedBytes;
    const idleBytes = this.#idleBytes - this.#reader.bufferedBytes;
    if (idleBytes <= idleBytesAtOnce) return;
    const seconds = (this.#clock.monotonicMs() - this.#idleSinceMs) / 1000;
    if (idleBytes > idleBytesAtOnce + seconds * idleBytesPerSecond) throw nothingOfUse(idleBytes);
  }

  /** Counts the incomplete event on the memory account. Throws if the account is full. */
  #countEvent(eventBytes: number): void {
    const bytes = eventBytes < countedEventBytes ? 0 : eventBytes;
    const more = bytes - this.#countedBytes;
    if (more === 0) return;
    const { memoryAccount } = this.#options;
    if (more < 0) {
      memoryAccount.release("events", -more);
    } else {
      const refusal = memoryAccount.take("events", more);
      if (refusal) throw refusal;
    }
    this.#countedBytes = bytes;
  }

  /**
   * Translates an event. `start` is the offset at which it begins in the reader's text, or -1 if only a part of it is
   * there.
   */
  #translate(data: string, start: number): string {
    const { text, position, name } = this.#reader;
    if (name === "error") throw this.#faultIn(data);
    const { keepAlive } = this.#options.request.dialect;
    if (isHeartbeat(name, data, keepAlive !== comment)) return "";
    const raw = start < 0 ? undefined : text.slice(start, position);
    return this.#chunks.translate(data, raw);
  }

  /** Returns the error from an event named `error`. Its data may have any format. */
  #faultIn(data: string): GatewayError {
    const engine = this.#dispatched?.deployment.engine;
    return reportedFault(decodeByteText(data), engine, "The model server failed in the middle of the answer.");
  }

  #record(events: string): void {
    if (this.#recorded) this.#options.record(decodeByteText(events));
  }

  #recordEnd(events: string): void {
    if (this.#options.recordsEnd) this.#options.recordEnd(decodeByteText(events));
  }

  #write(bytes: string): void {
    this.#writtenAtMs = this.#clock.monotonicMs();
    if (this.#client) this.#wrote(this.#client.write(bytes));
    else this.#writeEarly(bytes);
  }

  #writeEarly(bytes: string): void {
    this.#early += bytes;
    this.#askForClient();
    // Until the client's stream is open, the client counts as slow, so that the engine pauses.
    if (!this.#client) this.#wrote(false);
  }

  #askForClient(): void {
    if (this.#isAskedFor) return;
    this.#isAskedFor = true;
    try {
      this.#options.begins((client) => this.#attach(client));
    } catch (fault) {
      this.#isAskedFor = false;
      this.#finish(fault, undefined);
    }
  }

  #attach(client: ClientStream): void {
    this.#client = client;
    const early = this.#early;
    this.#early = "";
    if (early !== "" && !client.write(early)) {
      this.#wrote(false);
      client.onDrain = () => this.#caughtUp();
    } else {
      this.#caughtUp();
    }
    if (this.#isRecorded) this.recorded();
  }

  /** Called once it is known that the engine's output is an answer and not an error. */
  #proves(): void {
    this.#isProven = true;
    const dispatched = this.#dispatched as Dispatched;
    try {
      if (this.#hasBegun) dispatched.answers();
      else this.#options.answers(dispatched);
    } catch (fault) {
      this.#finish(fault, undefined);
    }
  }

  #wrote(keepsUp: boolean): void {
    if (keepsUp || this.#over || this.#behindSinceMs !== undefined) return;
    this.#behindSinceMs = this.#writtenAtMs;
    this.#fellBehind();
  }

  #fellBehind(): void {
    if (this.#client) this.#client.onDrain ??= () => this.#caughtUp();
    this.#dispatched?.response.body.pause();
  }

  #caughtUp(): void {
    if (this.#over || this.#behindSinceMs === undefined) return;
    this.#behindSinceMs = undefined;
    if (this.#buffered === undefined) this.#dispatched?.response.body.resume();
    if (this.#endDueMs === undefined) return;
    this.#endDueMs = undefined;
    this.#expectEnd(false);
  }

  /** Ends the stream with these last events, followed by the events that the format requires at the end. */
  #complete(events: string): void {
    this.#endWhole(events + this.#chunks.ending(), false);
  }

  /** Ends a complete stream. If `isStopped` is true, the engine is stopped too. */
  #endWhole(last: string, isStopped: boolean): void {
    if (this.#options.guard?.asks) this.#endOnceAsked(last, isStopped);
    else this.#endWith(last, isStopped);
  }

  /**
   * Ends the stream once guardrails have checked its last part. Meanwhile the client gets keep-alives, and further
   * input is ignored.
   */
  #endOnceAsked(events: string, isStopped: boolean): void {
    const guarded = this.#guarded as GuardedStream;
    this.#buffered = "";
    this.#endDueMs = undefined;
    this.#isEnding = true;
    guarded.ask().then(() => {
      if (this.#over) return;
      try {
        this.#endWith(events + guarded.taken(), isStopped);
      } catch (error) {
        this.#endBroken(error, events);
      }
    });
  }

  #endWith(last: string, isStopped: boolean): void {
    this.#record(last);
    this.#recordEnd(last);
    this.#finish(undefined, last, isStopped);
  }

  /**
   * Ends the stream and stops the engine, because a quota is used up. The client gets the same end as at a token limit.
   */
  #stopHere(events: string): void {
    this.#endWith(events + this.#chunks.stopped((this.#stop as StreamStop).mark()), true);
  }

  /**
   * Handles an error that follows `events`. Tries another engine if possible. Otherwise ends the stream with the error.
   * `isCut` is true if the connection broke.
   */
  #break(error: unknown, events: string, isCut = false): void {
    const { continuation } = this.#options;
    const dispatched = this.#dispatched;
    if (dispatched && events === "" && !this.#isBegun && isOfEngine(error)) this.#tryAnother(dispatched, error, isCut);
    else if (continuation && dispatched && continuation.isCut(error))
      this.#cut(continuation, dispatched, error, events);
    else this.#endBroken(error, events);
  }

  /** Continues the answer at another model server if possible, because this one broke off. */
  #cut(continuation: Continuation, dispatched: Dispatched, error: unknown, events: string): void {
    if (this.#isAnswered) {
      this.#completeCut(events);
      return;
    }
    if (events !== "") {
      this.#hasBegun = true;
      this.#record(events);
      this.#write(events);
      if (this.#over) return;
    }
    const verdict = continuation.begins(dispatched, error, this.#chunks, this.#isBegun);
    if (verdict === "cannot") this.#endBroken(error, "");
    else if (verdict === "at_limit") this.#endWhole(this.#chunks.stopped(undefined), true);
    else if (verdict === "spent") this.#stopHere("");
    else this.#restart(continuation, dispatched, error);
  }

  /** Reports whether the answer is complete, although the usage and the end mark may be missing. */
  get #isAnswered(): boolean {
    return this.#chunks.finishSeen && !this.#chunks.isOpen;
  }

  #completeCut(events: string): void {
    if (this.#buffered === undefined) this.#complete(events);
    else this.#endsBuffered = true;
  }

  /** Tries another deployment. The client does not notice this, because it has received no event. */
  #tryAnother(dispatched: Dispatched, error: unknown, isCut: boolean): void {
    this.#reset(dispatched, error);
    whenSettled(this.#options.another(dispatched, error, isCut), onSource, onNoSource, this);
  }

  #restart(continuation: Continuation, dispatched: Dispatched, error: unknown): void {
    dispatched.done(true, undefined, error);
    this.#reset(dispatched, error);
    whenSettled(continuation.dispatch(), onSource, onNobody, this);
  }

  #reset(dispatched: Dispatched, error: unknown): void {
    this.#dispatched = undefined;
    this.#broken = error;
    this.#isProven = false;
    dispatched.response.body.cancel();
    this.#whole?.cancel();
    this.#reader = new SseReader(this.#options.request.dialect.itemBytes);
    this.#countEvent(0);
    this.#endDueMs = undefined;
    // If a quota check or guardrails are pending, they continue. Input that has arrived meanwhile is dropped, because
    // the next server sends it again.
    if (this.#buffered !== undefined) this.#buffered = "";
    this.#endsBuffered = false;
    this.#firstByteSeen = false;
    this.#isFormKnown = false;
    this.#object = undefined;
    this.#atRest = false;
    this.#idleBytes = 0;
  }

  /** Called if no server can continue the answer. Ends the stream with the error of the last server. */
  nobody(): void {
    if (!this.#over) this.#endBroken(this.#broken, "");
  }

  #endBroken(error: unknown, events: string): void {
    const shown = error instanceof GatewayError ? error : brokeOff(error, this.#dispatched?.deployment.engine);
    if (!this.#isAskedFor && events === "") {
      this.#finish(shown, undefined);
      return;
    }
    if (events !== "") this.#record(events);
    const last = events + this.#chunks.errorEvent(this.#options.renderError(shown), shown);
    this.#recordEnd(last);
    this.#finish(shown, last);
  }

  /** Called when the client has left, or when it is cut off because its unread output exceeds the memory account. */
  cancelled(): void {
    const { reason } = this.#options.clientGone;
    const why = reason instanceof GatewayError ? reason : new DOMException("The client left", "AbortError");
    if (this.#over) return;
    if (why === reason || !this.#lacksUsageAlone) this.#finish(why, undefined);
    else this.#awaitUsage();
  }

  /** Reports whether the client has the complete answer and only the engine's usage is missing. */
  get #lacksUsageAlone(): boolean {
    const isGoingOn = this.#buffered === undefined && !this.#isEnding && this.#client !== undefined;
    return isGoingOn && this.#isAnswered && this.#chunks.reported === undefined;
  }

  /** Reads the rest of the stream only to get the usage, without waiting for the client. */
  #awaitUsage(): void {
    if (this.#behindSinceMs !== undefined) this.#dispatched?.response.body.resume();
    this.#behindSinceMs = undefined;
    this.#endDueMs = undefined;
    this.#expectEnd(false);
  }

  get caller(): Stoppable["caller"] {
    return this.#options.caller;
  }

  stop(error: GatewayError): void {
    if (!this.#over) this.#endBroken(error, "");
  }

  /** Called when the end of the request was recorded. Sends the last events. */
  recorded(): void {
    const last = this.#last;
    this.#isRecorded = true;
    if (!this.#isAskedFor) this.#options.unbegun(this.#fault);
    else if (last !== undefined) this.#client?.end(last && this.#options.truthful(last));
  }

  #cutOff(): void {
    this.#finish(new DOMException("The client stopped reading", "AbortError"), undefined);
    this.#client?.abort();
  }

  /**
   * Ends the stream. `last` has the last events, which are sent after the end was recorded. It is undefined if no
   * client reads them.
   */
  #finish(error: unknown, last: string | undefined, isStopped = false): void {
    const options = this.#options;
    const dispatched = this.#dispatched;
    if (last !== undefined) {
      if (dispatched && !this.#isProven) this.#proves();
      // The client's stream is requested first, because `onEnd` depends on whether the answer has begun.
      this.#askForClient();
      if (this.#over) return;
    }
    this.#over = true;
    this.#idleBytes = 0;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    options.clientGone.off(this);
    options.stopping.remove(this);
    // The engine is stopped before the end is recorded, so that an abandoned request does not count in the engine's
    // measured speed.
    if (error !== undefined || isStopped) options.abort();
    this.#whole?.cancel();
    const { reported, deliveredPieces } = this.#chunks;
    this.#countEvent(0);
    const isFault = error instanceof GatewayError && !(error instanceof BlamelessError);
    dispatched?.done(isFault, reported?.completionTokens ?? deliveredPieces);
    if (error !== undefined || isStopped) dispatched?.response.body.cancel();
    else if (dispatched) this.#drain(dispatched);
    const recorded = this.#reportEnd(error);
    if (last === undefined && this.#isAskedFor) return;
    this.#last = last;
    this.#fault = error;
    whenSettled(recorded, onRecorded, onRecorded, this);
  }

  /** Calls `onEnd`. Returns a rejected promise instead of throwing, so that the client's answer is always ended. */
  #reportEnd(error: unknown): MaybePromise<void> {
    try {
      return this.#options.onEnd(this.#chunks, error);
    } catch (fault) {
      return Promise.reject(fault);
    }
  }

  #drain({ response }: Dispatched): void {
    if (this.#behindSinceMs !== undefined) response.body.resume();
    this.#timer = setTimeout(onTimer, drainMs, this);
  }

  #drainMore(bytes: number): void {
    this.#idleBytes += bytes;
    if (this.#idleBytes <= maxDrainedBytes) return;
    this.#dispatched?.response.body.cancel();
    this.#drained();
  }

  #drained(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

/** Reads from one of several model servers. Output of this server is ignored after another server has taken over. */
class Part implements BodySink {
  readonly #relay: Relay;
  readonly #dispatched: Dispatched;

  constructor(relay: Relay, dispatched: Dispatched) {
    this.#relay = relay;
    this.#dispatched = dispatched;
  }

  data(bytes: ByteSpan): void {
    if (this.#relay.isFrom(this.#dispatched)) this.#relay.data(bytes);
  }

  end(): void {
    if (this.#relay.isFrom(this.#dispatched)) this.#relay.end();
  }

  fail(error: unknown): void {
    this.#relay.failOf(this.#dispatched, error);
  }
}

function isWaitedFor(source: RelayOptions["source"]): source is MaybePromise<Dispatched> {
  return source instanceof Deferred || source instanceof Promise;
}

/**
 * These functions get the relay as an argument. Shared functions save memory, compared with closures for each stream.
 */
function onTimer(relay: Relay): void {
  relay.onTimer();
}

function onSource(dispatched: Dispatched, relay: Relay): void {
  relay.begin(dispatched);
}

function onNoSource(error: unknown, relay: Relay): void {
  relay.fail(error);
}

function onNobody(_: unknown, relay: Relay): void {
  relay.nobody();
}

function onRecorded(_: unknown, relay: Relay): void {
  relay.recorded();
}

function nothingOfUse(bytes: number): GatewayError {
  return new GatewayError("upstream_error", "The model server sends much that is no part of an answer.", {
    detail: `${bytes} bytes of comments, or of events without a choice, since the last event of use`,
  });
}

function emptyStream(): GatewayError {
  return noAnswer("a stream without an event");
}

function closedEarly(): GatewayError {
  return new EngineFault("broke_off", "The model server closed the connection in the middle of the answer.");
}
