// Records an answer as the client gets it, until the request ends and the answer is stored or dropped.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import type { TokenUsage, UsageOutcome } from "../../domain/usage/usage.ts";
import type { AnswerCollector, KeptAnswers } from "../../requests/dialects/answer.ts";

/** Maximum characters of a stored answer. */
const maxAnswerSize = 10_000_000;
/** Collected bytes are counted in steps of this size; most answers are shorter than one step. */
const countedBytes = 64 * 1024;

export const secondsPerDay = 86_400;

/** Reason why an answer is not stored. */
export type Loss = "too_large" | "unreadable" | "no_room";

export interface AnswerEnd {
  /** Start of the request in Unix seconds. */
  createdAt: number;
  /** Usage, for a stream whose client did not ask for it. */
  usage: TokenUsage;
  outcome: UsageOutcome;
}

/**
 * Records an answer. If the client left, nothing is stored and `keep` is not called. `release` is always called, once.
 */
export abstract class AnswerRecorder {
  /** True if all events of a stream must be added; otherwise only those at its end. */
  readonly wantsAllEvents: boolean;
  /** True if the answer claims to be stored but is not; `truthful` then corrects it. */
  takesBack = false;
  readonly #kept: KeptAnswers;
  #chunks: AnswerCollector | undefined;
  #whole: string | undefined;
  #lost: Loss | undefined;
  readonly #memoryAccount: MemoryAccount;
  #countedBytes = 0;

  constructor(kept: KeptAnswers, memoryAccount: MemoryAccount) {
    this.#kept = kept;
    this.#memoryAccount = memoryAccount;
    this.wantsAllEvents = kept.ofAllEvents;
  }

  /** Adds the text of one or more events of the stream, as sent to the client. */
  add(events: string): void {
    if (this.#lost) return;
    this.#chunks ??= this.#kept.collector();
    try {
      this.#chunks.add(events);
      if (this.#chunks.size > maxAnswerSize) this.#loseTo("too_large");
      else this.#count(this.#chunks.size);
    } catch {
      this.#loseTo("unreadable");
    }
  }

  /** Adds the text of an answer that is not streamed. */
  addWhole(text: string): void {
    if (text.length > maxAnswerSize) this.#loseTo("too_large");
    else this.#whole = text;
  }

  /**
   * Stores the answer. The client gets the end of its answer when the returned promise has settled, or immediately if
   * undefined is returned. Never rejects.
   */
  abstract keep(end: AnswerEnd): MaybePromise<void> | undefined;

  /**
   * Returns `text`, a whole answer or the last events of a stream, for the client after `keep` has settled. Removes
   * the claim that the answer is stored if it is not.
   */
  truthful(text: string): string {
    return this.takesBack ? this.#kept.unkept(text) : text;
  }

  /** Releases the collected bytes; nothing more is collected. */
  release(): void {
    if (this.#countedBytes > 0) this.#memoryAccount.release("chats", this.#countedBytes);
    this.#countedBytes = 0;
  }

  /** Reason why an answer that began is not stored. */
  protected get lost(): Loss | undefined {
    return this.#lost;
  }

  /** The approximate number of characters of the answer. */
  protected get size(): number {
    return this.#whole?.length ?? this.#chunks?.size ?? 0;
  }

  /** Returns the answer; undefined if there is none. */
  protected answer(usage: TokenUsage): Record<string, unknown> | undefined {
    if (this.#lost) return undefined;
    try {
      return this.#whole === undefined ? this.#chunks?.answer(usage) : JSON.parse(this.#whole);
    } catch {
      // An invalid answer must not prevent the request from being logged.
      this.#loseTo("unreadable");
      return undefined;
    }
  }

  #count(size: number): void {
    const more = size - this.#countedBytes;
    if (more < countedBytes) return;
    if (this.#memoryAccount.take("chats", more)) this.#loseTo("no_room");
    else this.#countedBytes = size;
  }

  #loseTo(reason: Loss): void {
    this.#lost = reason;
    this.release();
    this.#chunks = undefined;
  }
}
