// Answers that are kept to be given again, and the port of where they are.
import type { TokenUsage } from "../../usage/usage.ts";

/** Whose answer it is, of which model, and to which request: `digest` is of all that matters of one. */
export interface AnswerPlace {
  readonly digest: string;
  readonly accountId: string;
  /** Public id of the model that served it. */
  readonly model: string;
}

/** An answer as its client got it. */
export interface KeptAnswer {
  /** JSON, or the events of a stream; nobody changes them. */
  readonly bytes: Buffer;
  readonly usage: TokenUsage;
  /** Members of the request that its model server left out of account. */
  readonly ignored: readonly string[];
  /** Unix seconds of when it was made, and from when on it is not given any more. */
  readonly at: number;
  readonly expiresAt: number;
}

/** Which answers are forgotten: of an account, of a model, of both, or all. */
export interface ForgottenAnswers {
  readonly accountId?: string | undefined;
  readonly model?: string | undefined;
}

/** The answer at a place, and what is to be handed in with one that is written there instead. */
export interface FoundAnswer {
  readonly answer: KeptAnswer | undefined;
  /** What was forgotten up to now: what is written with it is not there after anything more was. */
  readonly mark: unknown;
}

/** What cannot be reached has nothing: it never throws, and never keeps a request waiting for long. */
export interface AnswerStore {
  read(place: AnswerPlace): FoundAnswer | Promise<FoundAnswer>;
  /** It need not be kept, nor for as long as it might. */
  write(place: AnswerPlace, answer: KeptAnswer, mark: unknown): void;
  /** Rejects with `service_unavailable` where that cannot be promised. */
  forget(which: ForgottenAnswers): Promise<void>;
}
