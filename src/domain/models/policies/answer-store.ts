// The response cache and the port of its store.
import type { TokenUsage } from "../../usage/usage.ts";

/** Identifies a cached answer: account, model, and `digest` of all relevant parts of the request. */
export interface AnswerKey {
  readonly digest: string;
  readonly accountId: string;
  /** Public id of the model that served the answer. */
  readonly model: string;
}

/** An answer as its client got it. */
export interface KeptAnswer {
  /** JSON, or the events of a stream. Never modified. */
  readonly bytes: Buffer;
  readonly usage: TokenUsage;
  /** Members of the request that its model server ignored. */
  readonly ignored: readonly string[];
  /** Unix seconds of the answer's creation and of its expiry. */
  readonly at: number;
  readonly expiresAt: number;
}

/** The answers to clear: those of an account, of a model, of both, or all. */
export interface ForgottenAnswers {
  readonly accountId?: string | undefined;
  readonly model?: string | undefined;
}

/** The cached answer, and the mark to pass when a new one is written. */
export interface FoundAnswer {
  readonly answer: KeptAnswer | undefined;
  /**
   * Identifies the state of the cache at this lookup. An answer that is written with the mark is dropped if the cache
   * was cleared after the lookup.
   */
  readonly mark: unknown;
}

/** An unreachable store has no answers: it never throws, and never delays a request for long. */
export interface AnswerStore {
  read(key: AnswerKey): FoundAnswer | Promise<FoundAnswer>;
  /** Stores the answer. The store may keep it for a shorter time than `expiresAt`, or not at all. */
  write(key: AnswerKey, answer: KeptAnswer, mark: unknown): void;
  /** Rejects with `service_unavailable` if clearing cannot be guaranteed. */
  forget(which: ForgottenAnswers): Promise<void>;
}
