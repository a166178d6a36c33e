// One response in the background: its call of a model, which no client's leaving ends, and who hears what comes of it.

import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { decodeByteText } from "../../base/bytes/byte-text.ts";
import type { ClientStream } from "../../base/bytes/client-stream.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import type { GatewayError } from "../../base/errors.ts";
import type { LimitStatus } from "../../domain/limits/limits.ts";
import type { Priority } from "../../domain/models/policies/priority.ts";
import type {
  BackgroundStore,
  ResponseStore,
  StoredItem,
  StoredResponse,
} from "../../domain/models/stored-response.ts";
import type { Principal } from "../../domain/principal.ts";
import type { RequestTrace } from "../../domain/usage/trace.ts";
import type { TokenUsage, UsageOutcome } from "../../domain/usage/usage.ts";
import type { InferenceAnswer, InferenceCall } from "../../inference/call.ts";
import { tellEnd } from "../../inference/log-usage.ts";
import type { MessageRequest } from "../../inference/message-request.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { ownItems } from "../../requests/dialects/response/kept-items.ts";
import { failureCode } from "../../requests/dialects/response/reply-writer.ts";
import { renderError, toGatewayError } from "../../wire/errors.ts";
import { RunEvents } from "./run-events.ts";
import { RunWriter, type Written } from "./run-writer.ts";
import type { StoreTurns } from "./store-turns.ts";

/** With more that is not in the store yet its model is not read on. */
const maxUnstored = 1_000_000;

export interface BackgroundRunOptions {
  message: MessageRequest;
  principal: Principal;
  tagHeader: string | null;
  priority: Priority | undefined;
  memoryAccount: MemoryAccount;
  request: DecodedRequest;
  /** What is kept before a model was asked, its response included. */
  stored: StoredResponse;
  responses: Pick<ResponseStore, "insert">;
  background: Pick<BackgroundStore, "progress" | "end" | "state">;
  turns: StoreTurns;
  clock: Clock;
  /** Its end could not be written for so long that it was given up. */
  onNotStored(): void;
}

/** What a run needs until its client is answered. */
export interface BackgroundBegin {
  /** Has a model answer it. Throws, or rejects with, a GatewayError where it does not come to that. */
  ask(call: InferenceCall<void>): MaybePromise<void>;
  onLimits(status: LimitStatus): void;
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
  /** Settles when the end is in the store, or was given up, or where it did not even begin. */
  readonly ended: Promise<void>;
  readonly #options: BackgroundRunOptions;
  readonly #writer: RunWriter;
  readonly #listeners = new Set<EventListener>();
  readonly #hasEnded: () => void;
  /** Who is told until its client is answered. */
  #asked: (Pick<BackgroundBegin, "onLimits"> & { onLedger(): void }) | undefined;
  /** Characters of events that are on the account of the key. */
  #held = 0;
  /** How many events its listeners were told. */
  #told = 0;
  /** Whether its row is there, or was. */
  #isBegun = false;
  /** Resolves with true once the row is there, and with false once it cannot be made. */
  readonly #begun = Promise.withResolvers<boolean>();
  #isOver = false;
  /** Whether its last event may be told. */
  #isStored = false;
  /** Why it ended without an answer. */
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

  /** The response with which its client is answered, before any model was asked. */
  get queued(): StoredItem {
    return this.#options.stored.response;
  }

  get request(): DecodedRequest {
    return this.#options.request;
  }

  /** What guardrails have masked is kept so, too: it is not in the store before it is on the ledger. */
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
   * Resolves once the request is admitted and its response kept, with which its client may be answered. Rejects with the
   * GatewayError that its client gets instead: then there is nothing that goes on.
   */
  async begin(begin: BackgroundBegin): Promise<void> {
    try {
      await this.#onLedger(begin);
      await this.#options.responses.insert([this.#options.stored]);
    } catch (error) {
      this.#isOver = true;
      this.#begun.resolve(false);
      this.#writer.drop();
      this.left.cancel(error);
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
    this.#tell();
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
    this.#writer.drop();
    this.cancel();
  }

  /** The store is closed soon: the end is not tried to be written any longer than this. */
  giveUpAt(monotonicMs: number): void {
    this.#writer.giveUpAt(monotonicMs);
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

  /** Resolves with false if the row could not be made: the client was refused, whatever the model has said. */
  async mayCharge(): Promise<boolean> {
    return (await this.#begun.promise) && (await this.#writer.isOurs());
  }

  onLedger(): void {
    this.#options.message.isOnLedger = true;
    this.#asked?.onLedger();
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

  /** What it says could not be written for so long that its model was given up. */
  abort(): void {
    this.events.fail("server_error", "The response could not be kept, as the database was away for too long.");
    this.#end();
  }

  /** Asks its model; resolves once the ledger has the request. */
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

  /** Nothing was answered. */
  #failed(error: unknown): void {
    const { code, engineCode = code, message } = toGatewayError(error);
    this.events.fail(failureCode(engineCode), message);
    this.#end();
  }

  /** On the account of the key, until it is written. Where there is no room for it, it ends. */
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

  #written(count: number): void {
    this.events.stored(count);
    this.#hold();
    if (this.events.size <= maxUnstored) this.onDrain?.();
  }

  /** While its row is still being made, the end waits for that: `begin` calls it again. */
  #end(): void {
    if (this.#isOver || !this.#isBegun) return;
    this.#isOver = true;
    void this.#writer.end().then((written) => this.#hasWritten(written));
  }

  #hasWritten(written: Written): void {
    const { message, onNotStored } = this.#options;
    // How it ended elsewhere is read there.
    if (written !== "elsewhere") {
      this.#isStored = true;
      this.#tell();
    }
    if (written === "given_up") onNotStored();
    this.memoryAccount.release("chats", this.#held);
    message.finish(this.#fault);
    this.#hasEnded();
    for (const listener of this.#listeners) listener.ended();
  }
}
