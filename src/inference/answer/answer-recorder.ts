// What is recorded of an answer, as the client gets it, until it is known whether it is kept.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import type { MaybePromise } from "../../base/deferred.ts";
import type { TokenUsage, UsageOutcome } from "../../domain/usage/usage.ts";
import type { AnswerCollector, KeptAnswers } from "../../requests/dialects/answer.ts";

/** Characters of an answer; a longer one is not stored. */
const maxAnswerSize = 10_000_000;
/** What is collected is told to the ledger in steps: most answers are shorter than one. */
const countedBytes = 64 * 1024;

export const secondsPerDay = 86_400;

/** Why it is not kept. */
export type Loss = "too_large" | "unreadable" | "no_room";

export interface AnswerEnd {
  /** Unix seconds of the begin of the request. */
  createdAt: number;
  /** For a stream whose client did not ask for it. */
  usage: TokenUsage;
  outcome: UsageOutcome;
}

/** Nothing is kept of what was left by its client: then `keep` is not called. `release` is, in any case, once. */
export abstract class AnswerRecorder {
  /** Whether all events of a stream are to be added; else those alone that come with its end. */
  readonly wantsAllEvents: boolean;
  /** True if the answer says that it is stored, which it is not: then `truthful` changes it. */
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

  /** Text of one or more events of the stream, as they go to the client. */
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

  /** Text of an answer that is not streamed. */
  addWhole(text: string): void {
    if (text.length > maxAnswerSize) this.#loseTo("too_large");
    else this.#whole = text;
  }

  /**
   * The client gets the end of its answer once what this returns has settled; nothing where it need not wait. Never rejects.
   */
  abstract keep(end: AnswerEnd): MaybePromise<void> | undefined;

  /**
   * Returns what the client gets once `keep` has settled: `text`, a whole answer or the last events of a stream, without a
   * claim that the answer is stored where it is not.
   */
  truthful(text: string): string {
    return this.takesBack ? this.#kept.unkept(text) : text;
  }

  /** It collects nothing any more. */
  release(): void {
    if (this.#countedBytes > 0) this.#memoryAccount.release("chats", this.#countedBytes);
    this.#countedBytes = 0;
  }

  /** Why there is no answer to be kept, where one began. */
  protected get lost(): Loss | undefined {
    return this.#lost;
  }

  /** About how many characters the answer has. */
  protected get size(): number {
    return this.#whole?.length ?? this.#chunks?.size ?? 0;
  }

  /** Undefined where there is none. */
  protected answer(usage: TokenUsage): Record<string, unknown> | undefined {
    if (this.#lost) return undefined;
    try {
      return this.#whole === undefined ? this.#chunks?.answer(usage) : JSON.parse(this.#whole);
    } catch {
      // What an engine says must not keep the request from being logged.
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
