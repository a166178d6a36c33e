// Answers in the response cache, and the port of their store.
import type { TokenUsage } from "../../usage/usage.ts";

/** Identifies a cached answer. `digest` covers all parts of the request that affect the answer. */
export interface AnswerKey {
  readonly digest: string;
  readonly accountId: string;
  /** Public id of the model that served the answer. */
  readonly model: string;
}

/** A cached answer, exactly as a client got it. */
export interface KeptAnswer {
  /** JSON, or the events of a stream. The bytes must not be modified. */
  readonly bytes: Buffer;
  readonly usage: TokenUsage;
  /** Names of request members that the model server ignored. */
  readonly ignored: readonly string[];
  /** Unix seconds. `at` is when the answer was created. */
  readonly at: number;
  readonly expiresAt: number;
}

/** The answers to clear: those of an account, of a model, or of both. If empty, all answers. */
export interface ForgottenAnswers {
  readonly accountId?: string | undefined;
  readonly model?: string | undefined;
}

/** The result of a lookup. Pass `mark` to `write` if a new answer is stored. */
export interface FoundAnswer {
  readonly answer: KeptAnswer | undefined;
  /**
   * Identifies the state of the cache at this lookup. If the cache is cleared afterwards, an answer written with this
   * mark is dropped.
   */
  readonly mark: unknown;
}

/**
 * The store of cached answers. If it is unreachable, it has no answers: it never throws, and never delays a request for
 * long.
 */
export interface AnswerStore {
  read(key: AnswerKey): FoundAnswer | Promise<FoundAnswer>;
  /** Stores the answer. The store may drop it before `expiresAt`, or not store it at all. */
  write(key: AnswerKey, answer: KeptAnswer, mark: unknown): void;
  /** Clears answers. Rejects with `service_unavailable` if some answers may remain. */
  forget(which: ForgottenAnswers): Promise<void>;
}
