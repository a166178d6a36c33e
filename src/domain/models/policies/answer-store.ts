// The response cache and the port of its store.
import type { TokenUsage } from "../../usage/usage.ts";

/** Identifies a cached answer: account, model, and `digest` of all relevant parts of the request. */
export interface AnswerKey {
  readonly digest: string;
  readonly accountId: string;
  /** Public id of the model that served it. */
  readonly model: string;
}

/** An answer as its client got it. */
export interface KeptAnswer {
  /** JSON, or the events of a stream. Never modified. */
  readonly bytes: Buffer;
  readonly usage: TokenUsage;
  /** Members of the request that its model server ignored. */
  readonly ignored: readonly string[];
  /** Unix seconds of its creation and of its expiry. */
  readonly at: number;
  readonly expiresAt: number;
}

/** Which answers to clear: of an account, of a model, of both, or all. */
export interface ForgottenAnswers {
  readonly accountId?: string | undefined;
  readonly model?: string | undefined;
}

/** The cached answer, and the mark to pass when a new one is written. */
export interface FoundAnswer {
  readonly answer: KeptAnswer | undefined;
  /** The state of clearing at the lookup: an answer written with it is dropped if the cache was cleared since. */
  readonly mark: unknown;
}

/** An unreachable store has no answers: it never throws, and never delays a request for long. */
export interface AnswerStore {
  read(key: AnswerKey): FoundAnswer | Promise<FoundAnswer>;
  /** Stores the answer, without a guarantee that and how long it is kept. */
  write(key: AnswerKey, answer: KeptAnswer, mark: unknown): void;
  /** Rejects with `service_unavailable` if clearing cannot be guaranteed. */
  forget(which: ForgottenAnswers): Promise<void>;
}
