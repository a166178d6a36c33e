// A background response: a model request that outlives the client's connection, and the listeners to its events.

import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { decodeByteText } from "../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import type { GatewayError } from "../../base/errors.ts";
import type { LimitStatus } from "../../domain/limits/limits.ts";
import type { Deployment } from "../../domain/models/model.ts";
import type { Priority } from "../../domain/models/policies/priority.ts";
import type {
  BackgroundStore,
  ResponseStore,
  StoredItem,
  StoredResponse,
} from "../../domain/models/stored-response.ts";
import type { Principal } from "../../domain/principal.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { UsageEnd, UsageOutcome } from "../../domain/usage/usage.ts";
import type { InferenceAnswer, InferenceCall } from "../../inference/call.ts";
import { logEnd } from "../../inference/log-usage.ts";
import type { MessageRequest } from "../../inference/message-request.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { ownItems } from "../../requests/dialects/response/kept-items.ts";
import { failureCode } from "../../requests/dialects/response/reply-writer.ts";
import { renderError, toGatewayError } from "../../wire/errors.ts";
import { RunEvents } from "./run-events.ts";
import { RunWriter, type Written } from "./run-writer.ts";
import type { StoreTurns } from "./store-turns.ts";

/** Characters of unstored events above which reading from the model pauses. */
const maxUnstored = 1_000_000;

export interface BackgroundRunOptions {
  message: MessageRequest;
  principal: Principal;
  tagHeader: string | null;
  priority: Priority | undefined;
  memoryAccount: MemoryAccount;
  request: DecodedRequest;
  /** The response as stored before the model is asked. */
  stored: StoredResponse;
  responses: Pick<ResponseStore, "insert">;
  background: Pick<BackgroundStore, "progress" | "end" | "state">;
  turns: StoreTurns;
  clock: Clock;
  /** Called if writing the end failed for so long that the run gave up. */
  onNotStored(): void;
}

/** Callbacks that are used until the client gets its first answer, the queued response. */
export interface BackgroundBegin {
  /** Sends the request to a model. Throws, or rejects with, a GatewayError if that fails. */
  ask(call: InferenceCall<void>): MaybePromise<void>;
  onLimits(status: LimitStatus): void;
}

/** A listener that reads events as they arrive. */
export interface EventListener {
  /** Receives an event with its number. `data` is JSON. */
  event(number: number, data: string): void;
  /** Called when the end of the response is stored. */
  ended(): void;
}

export class BackgroundRun implements InferenceCall<void>, ClientStream {
  onDrain: (() => void) | undefined;
  readonly clientGone = new Cancellation();
  readonly events: RunEvents;
  /** Settles when the end is stored or given up, or when the run did not begin. */
  readonly ended: Promise<void>;
  readonly #options: BackgroundRunOptions;
  readonly #writer: RunWriter;
  readonly #listeners = new Set<EventListener>();
  readonly #hasEnded: () => void;
  /** Callbacks that are used until the client gets its first answer. */
  #asked: (Pick<BackgroundBegin, "onLimits"> & { onLedger(): void }) | undefined;
  /** Characters of unstored events that are charged to the key's memory account. */
  #held = 0;
  /** Number of events that listeners have received. */
  #delivered = 0;
  /** True after the row was created. */
  #isBegun = false;
  /** Resolves with true when the row exists, and with false if it cannot be created. */
  readonly #begun = Promise.withResolvers<boolean>();
  #isOver = false;
  /** True if listeners may receive the last event. */
  #isStored = false;
  /** The error because of which the run has no answer, if any. */
  #fault: GatewayError | undefined;

  constructor(options: BackgroundRunOptions) {
    this.#options = options;
    this.events = new RunEvents(options.stored.response);
    this.#writer = new RunWriter({
      ...{ id: this.id, events: this.events },
      ...{ background: options.background, turns: options.turns, clock: options.clock },
      written: (count) => this.#written(count),
      stopped: () => this.cancel(),
    });
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#hasEnded = resolve;
  }

  get id(): string {
    return this.#options.stored.id;
  }

  /** The queued response, which the client gets before a model is asked. */
  get queued(): StoredItem {
    return this.#options.stored.response;
  }

  get request(): DecodedRequest {
    return this.#options.request;
  }

  /**
   * Replaces the request, and the stored input, by a masked form. Call before the request is on the ledger and in the
   * store.
   */
  set request(masked: DecodedRequest) {
    const input = masked.goesOn?.input ?? ownItems(masked.body["input"]);
    this.#options.request = masked;
    this.#options.stored = { ...this.#options.stored, input };
  }

  get principal(): Principal {
    return this.#options.principal;
  }

  get requestId(): string {
    return this.#options.message.requestId;
  }

  get priority(): Priority | undefined {
    return this.#options.priority;
  }

  get tagHeader(): string | null {
    return this.#options.tagHeader;
  }

  get memoryAccount(): MemoryAccount {
    return this.#options.memoryAccount;
  }

  get trace(): RequestTrace | undefined {
    return this.#options.message.trace;
  }

  /**
   * Resolves when the request is admitted and the response is stored, so that the client can be answered. Rejects with
   * the GatewayError for the client; the run has then ended.
   */
  async begin(begin: BackgroundBegin): Promise<void> {
    try {
      await this.#onLedger(begin);
      await this.#options.responses.insert([this.#options.stored]);
    } catch (error) {
      this.#isOver = true;
      this.#begun.resolve(false);
      this.#writer.drop();
      this.clientGone.cancel(error);
      this.memoryAccount.release("chats", this.#held);
      this.#hasEnded();
      throw error;
    } finally {
      this.#asked = undefined;
    }
    this.#isBegun = true;
    this.#begun.resolve(true);
    this.#writer.start();
    this.#hold();
    this.#deliver();
    // Events may have ended the response while the row was created.
    if (this.events.isOver) this.#end();
  }

  /** Ends the run at the client's request. The output so far is kept. */
  cancel(): void {
    this.events.cancel();
    this.clientGone.cancel();
    this.#end();
  }

  /** Ends the run. Call after the response's row was deleted. */
  drop(): void {
    this.#writer.drop();
    this.cancel();
  }

  /** Sets the time after which the run no longer tries to write its end, because the store closes soon. */
  giveUpAt(monotonicMs: number): void {
    this.#writer.giveUpAt(monotonicMs);
  }

  /**
   * Sends events from number `first` on to the listener. Returns false if event `first` is only in the store and must
   * be read there.
   */
  listen(listener: EventListener, first: number): boolean {
    const { unstored } = this.events;
    if (this.#isOver || first < unstored.first) return false;
    const known = unstored.events.slice(first - unstored.first, this.#delivered - unstored.first);
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

  onLimits(status: LimitStatus): void {
    this.#asked?.onLimits(status);
  }

  onServedBy(model: string): void {
    this.#options.message.line["served_by"] = model;
  }

  onIgnored(members: readonly string[]): void {
    this.#options.message.line["ignored"] = members.join(",");
  }

  onCapped(tokens: number): void {
    this.#options.message.line["max_tokens"] = tokens;
  }

  /**
   * Resolves with false if the request must not be charged: its row could not be created, or another process failed the
   * response.
   */
  async mayCharge(): Promise<boolean> {
    return (await this.#begun.promise) && (await this.#writer.isOurs());
  }

  onLedger(): void {
    this.#options.message.isOnLedger = true;
    this.#asked?.onLedger();
  }

  onEnd(outcome: UsageOutcome, usage: UsageEnd, error: unknown, served?: Deployment): void {
    logEnd(this.#options.message.line, outcome, usage, served);
    if (outcome === "failed") this.#fault = toGatewayError(error);
  }

  answer(answer: InferenceAnswer): void {
    if (typeof answer !== "function") throw new Error("A response that was to be streamed came whole.");
    answer(this);
  }

  /** Takes bytes of the model's stream: whole events, with comments between them. */
  write(bytes: string): boolean {
    for (const event of bytes.split("\n\n")) {
      const start = event.indexOf("data: ");
      if (start >= 0) this.events.take(decodeByteText(event.slice(start + "data: ".length)));
    }
    this.#hold();
    this.#deliver();
    return this.events.size <= maxUnstored;
  }

  writeAround(before: string, bytes: Buffer, start: number, end: number, after: string): boolean {
    return this.write(before + bytes.toString("latin1", start, end) + after);
  }

  end(last = ""): void {
    this.write(last);
    this.events.fail("server_error", "The model's answer ended before it was whole.");
    this.#end();
  }

  /** Ends the run because writes failed for so long that reading from the model was given up. */
  abort(): void {
    this.events.fail("server_error", "The response could not be kept, as the database was away for too long.");
    this.#end();
  }

  /** Sends the request to the model. Resolves when the ledger has recorded the request. */
  #onLedger(begin: BackgroundBegin): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#asked = { onLimits: (status) => begin.onLimits(status), onLedger: resolve };
    void (async () => {
      try {
        await begin.ask(this);
      } catch (error) {
        reject(error);
        this.#failed(error);
      }
    })();
    return promise;
  }

  /** Ends a run whose request failed without an answer. */
  #failed(error: unknown): void {
    const { code, engineCode = code, message } = toGatewayError(error);
    this.events.fail(failureCode(engineCode), message);
    this.#end();
  }

  /** Counts unstored events against the key's memory. Ends the run if there is no room. */
  #hold(): void {
    const more = this.events.size - this.#held;
    if (more === 0 || this.#isOver) return;
    this.#held += more;
    if (more < 0) {
      this.memoryAccount.release("chats", -more);
      return;
    }
    const refusal = this.memoryAccount.take("chats", more);
    if (!refusal) return;
    this.#held -= more;
    this.events.fail("server_error", refusal.message);
    this.clientGone.cancel(refusal);
    this.#end();
  }

  /**
   * Sends new events to the listeners. The last event waits until it is stored, because the client may continue at
   * another replica at once.
   */
  #deliver(): void {
    const { first, events } = this.events.unstored;
    const end = first + events.length - (this.events.isOver && !this.#isStored ? 1 : 0);
    for (; this.#delivered < end; this.#delivered++) {
      const event = events[this.#delivered - first];
      if (event === undefined) continue;
      for (const listener of this.#listeners) listener.event(this.#delivered, event);
    }
  }

  #written(count: number): void {
    this.events.stored(count);
    this.#hold();
    if (this.events.size <= maxUnstored) this.onDrain?.();
  }

  /** Ends the run. Does nothing while the row is being created; `begin` then calls this function again. */
  #end(): void {
    if (this.#isOver || !this.#isBegun) return;
    this.#isOver = true;
    void this.#writer.end().then((written) => this.#hasWritten(written));
  }

  #hasWritten(written: Written): void {
    const { message, onNotStored } = this.#options;
    // Another process wrote the end in the store. Listeners read that end from there.
    if (written !== "elsewhere") {
      this.#isStored = true;
      this.#deliver();
    }
    if (written === "given_up") onNotStored();
    this.memoryAccount.release("chats", this.#held);
    message.finish(this.#fault);
    this.#hasEnded();
    for (const listener of this.#listeners) listener.ended();
  }
}
