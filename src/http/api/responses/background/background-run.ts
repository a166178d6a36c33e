// One response in the background: its call of a model, which no client's leaving ends, and its way into the store.
import { decodeByteText } from "../../../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../../../base/bytes/client-stream.ts";
import type { Holder } from "../../../../base/bytes/held-bytes.ts";
import { Cancellation } from "../../../../base/cancellation.ts";
import type { Clock } from "../../../../base/clock.ts";
import type { GatewayError } from "../../../../base/errors.ts";
import { failureCode } from "../../../../dialects/response/reply-writer.ts";
import type {
  BackgroundStore,
  ResponseStore,
  StoredItem,
  StoredResponse,
} from "../../../../domain/models/stored-response.ts";
import type { Principal } from "../../../../domain/principal.ts";
import type { RequestTrace } from "../../../../domain/usage/trace.ts";
import type { TokenUsage, UsageOutcome } from "../../../../domain/usage/usage.ts";
import type { InferenceAnswer, InferenceCall, InferenceDeps } from "../../../../inference/call.ts";
import type { DecodedRequest } from "../../../../inference/decoded-request.ts";
import { run } from "../../../../inference/run.ts";
import { renderError, toGatewayError } from "../../../exchange/errors.ts";
import type { Exchange, MessageRequest } from "../../../exchange/route.ts";
import { tellEnd } from "../../inference-answer.ts";
import { RunEvents } from "./run-events.ts";

/** What is new is written so often: a death loses no more of it. */
const writeMs = 1_000;
/** Others are told so often that somebody works on it, also while a model is silent. */
export const workingMs = 5_000;
/** With more that is not in the store yet its model is not read on. */
const mostUnstored = 1_000_000;
/** How long the end is tried to be written while the store is away. */
const endMs = 60_000;
const retryMs = 500;

export interface BackgroundRunOptions {
  exchange: Exchange;
  message: MessageRequest;
  principal: Principal;
  holder: Holder;
  request: DecodedRequest;
  /** What is kept before a model was asked, its response included. */
  stored: StoredResponse;
  responses: Pick<ResponseStore, "insert">;
  background: BackgroundStore;
  clock: Clock;
}

/** Whoever reads the events as they come. */
export interface EventListener {
  /** An event with its number; its data as JSON. */
  event(number: number, data: string): void;
  /** The end is in the store. */
  ended(): void;
}

export class BackgroundRun implements InferenceCall<void>, ClientStream {
  onDrain: (() => void) | undefined;
  readonly left = new Cancellation();
  readonly events: RunEvents;
  /** Settles when the end is in the store, or was given up. */
  readonly ended: Promise<void>;
  readonly #options: BackgroundRunOptions;
  readonly #listeners = new Set<EventListener>();
  readonly #hasEnded: () => void;
  /** Told once the ledger has the request. */
  #onLedger: () => void = () => {};
  #timer: ReturnType<typeof setInterval> | undefined;
  #writing: Promise<void> | undefined;
  #writtenAtMs: number;
  /** Characters of events that are on the account of the key. */
  #held = 0;
  /** How many events its listeners were told. */
  #told = 0;
  /** Whether its row is there; one that is not, or is not any more, is not written. */
  #isKept = false;
  #isOver = false;
  /** Whether its end was written, or was given up. */
  #isStored = false;
  /** Why it ended without an answer. */
  #fault: GatewayError | undefined;

  constructor(options: BackgroundRunOptions) {
    this.#options = options;
    this.events = new RunEvents(options.stored.response);
    this.#writtenAtMs = options.clock.monotonicMs();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#hasEnded = resolve;
  }

  get id(): string {
    return this.#options.stored.id;
  }

  /** The response with which its client is answered, before any model was asked. */
  get queued(): StoredItem {
    return this.#options.stored.response;
  }

  get request(): DecodedRequest {
    return this.#options.request;
  }

  get principal(): Principal {
    return this.#options.principal;
  }

  get requestId(): string {
    return this.#options.message.requestId;
  }

  get holder(): Holder {
    return this.#options.holder;
  }

  get trace(): RequestTrace | undefined {
    return this.#options.message.trace;
  }

  /**
   * Resolves once the request is admitted and its response kept, with which its client may be answered. Rejects with the
   * GatewayError that its client gets instead: then there is nothing that goes on.
   */
  async begin(deps: InferenceDeps): Promise<void> {
    const onLedger = Promise.withResolvers<void>();
    this.#onLedger = onLedger.resolve;
    void this.#run(deps).catch((error) => {
      onLedger.reject(error);
      this.#failed(error);
    });
    await onLedger.promise;
    try {
      await this.#options.responses.insert([this.#options.stored]);
    } catch (error) {
      this.#isOver = true;
      this.left.cancel(error);
      this.holder.release("chats", this.#held);
      throw error;
    }
    this.#isKept = true;
    this.#hold();
    this.#timer = setInterval(() => this.#tick(), writeMs);
    // It may have ended meanwhile.
    if (this.events.isOver) this.#end();
  }

  /** Ends it as its client wants: what was said so far stays. */
  cancel(): void {
    this.events.cancel();
    this.left.cancel();
    this.#end();
  }

  /** Its row was deleted: nobody wants what comes. */
  drop(): void {
    this.#isKept = false;
    this.cancel();
  }

  /**
   * Tells what comes from the event `first` on, from now on. False where that one is in the store already, and not here any
   * more: then it is read there.
   */
  listen(listener: EventListener, first: number): boolean {
    const { unstored } = this.events;
    if (this.#isOver || first < unstored.first) return false;
    const known = unstored.events.slice(first - unstored.first, this.#told - unstored.first);
    this.#listeners.add(listener);
    for (const [index, event] of known.entries()) {
      if (this.#listeners.has(listener)) listener.event(first + index, event);
    }
    return true;
  }

  leave(listener: EventListener): void {
    this.#listeners.delete(listener);
  }

  renderError(error: GatewayError): string {
    return renderError(error);
  }

  onLimits(): void {}

  onServedBy(model: string): void {
    this.#options.message.line["served_by"] = model;
  }

  onIgnored(members: readonly string[]): void {
    this.#options.message.line["ignored"] = members.join(",");
  }

  onLedger(): void {
    this.#options.exchange.isOnLedger = true;
    this.#options.message.isOnLedger = true;
    this.#onLedger();
  }

  onEnd(outcome: UsageOutcome, usage: TokenUsage, error: unknown): void {
    tellEnd(this.#options.message.line, outcome, usage);
    if (outcome === "failed") this.#fault = toGatewayError(error);
  }

  answer(answer: InferenceAnswer): void {
    if (typeof answer !== "function") throw new Error("A response that was to be streamed came whole.");
    answer(this);
  }

  /** Events come whole, and comments between them. */
  write(bytes: string): boolean {
    for (const event of bytes.split("\n\n")) {
      const start = event.indexOf("data: ");
      if (start >= 0) this.events.take(decodeByteText(event.slice(start + "data: ".length)));
    }
    this.#hold();
    this.#tell();
    return this.events.size <= mostUnstored;
  }

  writeAround(before: string, bytes: Buffer, start: number, end: number, after: string): boolean {
    return this.write(before + bytes.toString("latin1", start, end) + after);
  }

  end(last = ""): void {
    this.write(last);
    this.events.fail("server_error", "The model's answer ended before it was whole.");
    this.#end();
  }

  /** What it says could not be written for so long that its model was given up. */
  abort(): void {
    this.events.fail("server_error", "The response could not be kept, as the database was away for too long.");
    this.#end();
  }

  async #run(deps: InferenceDeps): Promise<void> {
    const { retentionDays } = deps.responseKeeper;
    // It is in the store from its begin, and its end comes there with its last events.
    const responseKeeper = { retentionDays, keep: () => Promise.resolve(), notStored: () => {} };
    await run(this, { ...deps, responseKeeper });
  }

  /** Nothing was answered. */
  #failed(error: unknown): void {
    const { code, engineCode = code, message } = toGatewayError(error);
    this.events.fail(failureCode(engineCode), message);
    if (this.#isKept) this.#end();
  }

  /** On the account of the key, until it is written. Where there is no room for it, it ends. */
  #hold(): void {
    const more = this.events.size - this.#held;
    if (more === 0 || this.#isOver) return;
    this.#held += more;
    if (more < 0) {
      this.holder.release("chats", -more);
      return;
    }
    const refusal = this.holder.take("chats", more);
    if (!refusal) return;
    this.#held -= more;
    this.events.fail("server_error", refusal.message);
    this.left.cancel(refusal);
    this.#end();
  }

  /** The last event is told once it is in the store: its client may go on from it at once, at another replica. */
  #tell(): void {
    const { first, events } = this.events.unstored;
    const end = first + events.length - (this.events.isOver && !this.#isStored ? 1 : 0);
    for (; this.#told < end; this.#told++) {
      const event = events[this.#told - first];
      if (event === undefined) continue;
      for (const listener of this.#listeners) listener.event(this.#told, event);
    }
  }

  #tick(): void {
    const isDue = this.#options.clock.monotonicMs() - this.#writtenAtMs >= workingMs;
    if (!this.#writing && (this.events.size > 0 || isDue)) this.#writing = this.#write();
  }

  /** Never rejects: what was not written is tried again. */
  async #write(): Promise<void> {
    const { background, clock } = this.#options;
    const { first, events } = this.events.unstored;
    const { status, response } = this.events;
    const some = [...events];
    try {
      const state = { status, response, events: { first, events: some } };
      const known = await background.progress(this.id, state, clock.nowSeconds());
      this.#writtenAtMs = clock.monotonicMs();
      this.#written(some.length);
      // It was deleted, or somebody took its process for dead.
      if (!known || known.status !== status) this.drop();
      else if (known.isCancelled) this.cancel();
    } catch {
      // While the store is away, which it says itself, what is new waits here.
    } finally {
      this.#writing = undefined;
    }
  }

  #written(count: number): void {
    this.events.stored(count);
    this.#hold();
    if (this.events.size <= mostUnstored) this.onDrain?.();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#timer);
    void this.#writeEnd();
  }

  async #writeEnd(): Promise<void> {
    const { background, clock, message } = this.#options;
    await this.#writing;
    const untilMs = clock.monotonicMs() + endMs;
    const { status, response, unstored } = this.events;
    while (this.#isKept) {
      try {
        await background.end(this.id, { status, response, events: unstored }, clock.nowSeconds());
        break;
      } catch {
        if (clock.monotonicMs() >= untilMs) break;
        await new Promise((resolve) => setTimeout(resolve, retryMs));
      }
    }
    this.#isStored = true;
    this.#tell();
    this.holder.release("chats", this.#held);
    message.finish(this.#fault);
    this.#hasEnded();
    for (const listener of this.#listeners) listener.ended();
  }
}
