// Collects an answer as it is sent to the client, and stores it at the end of the request.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import type { TokenUsage, UsageOutcome } from "../../domain/usage/usage.ts";
import type { AnswerCollector, KeptAnswers } from "../../requests/dialects/answer.ts";

/** Maximum characters of an answer. A longer answer is not stored. */
const maxAnswerSize = 10_000_000;
/** Minimum bytes of a reservation on the memory account. Most answers are shorter, so nothing is reserved for them. */
const countedBytes = 64 * 1024;

export const secondsPerDay = 86_400;

/** The reason why an answer cannot be stored. */
export type Loss = "too_large" | "unreadable" | "no_room";

export interface AnswerEnd {
  /** Start of the request in Unix seconds. */
  createdAt: number;
  /** The number of used tokens. Needed for a stream whose client did not request them. */
  usage: TokenUsage;
  outcome: UsageOutcome;
}

/** Collects and stores one answer. `release` must always be called once. If the client left, `keep` is not called. */
export abstract class AnswerRecorder {
  /** True if all events of a stream must be added, and not only the last ones. */
  readonly wantsAllEvents: boolean;
  /** True if the answer says that it is stored although it is not. `truthful` then corrects the answer. */
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

  /** Adds events of a stream, exactly as sent to the client. */
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

  /** Sets the text of an answer that is not streamed. */
  addWhole(text: string): void {
    if (text.length > maxAnswerSize) this.#loseTo("too_large");
    else this.#whole = text;
  }

  /**
   * Stores the answer. Never rejects. The end of the answer is sent to the client once the returned promise settles, or
   * immediately if undefined is returned.
   */
  abstract keep(end: AnswerEnd): MaybePromise<void> | undefined;

  /**
   * Returns the text for the client: the answer, or a stream's last events. If the answer was not stored, removes the
   * statement that it was. Call this after `keep`.
   */
  truthful(text: string): string {
    return this.takesBack ? this.#kept.unkept(text) : text;
  }

  /** Releases the memory of the collected answer. */
  release(): void {
    if (this.#countedBytes > 0) this.#memoryAccount.release("chats", this.#countedBytes);
    this.#countedBytes = 0;
  }

  /** The reason why the answer will not be stored. Undefined if it can be stored. */
  protected get lost(): Loss | undefined {
    return this.#lost;
  }

  /** The approximate length of the answer in characters. */
  protected get size(): number {
    return this.#whole?.length ?? this.#chunks?.size ?? 0;
  }

  /** Returns the collected answer, or undefined if it was lost or nothing was collected. */
  protected answer(usage: TokenUsage): Record<string, unknown> | undefined {
    if (this.#lost) return undefined;
    try {
      return this.#whole === undefined ? this.#chunks?.answer(usage) : JSON.parse(this.#whole);
    } catch {
      // An answer that cannot be parsed must not prevent the request from being logged.
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
