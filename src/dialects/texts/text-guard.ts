// What looks at the texts of requests and answers, as those see it who know where the texts stand.
import { BlamelessError } from "../../base/errors.ts";

/** A text that comes in pieces: what may be passed on of it. */
export interface GuardedText {
  feed(piece: string): string;
  /** The rest: nothing follows. */
  end(): string;
}

/** For one side of one request. */
export interface TextGuard {
  /** `isJson`: the text is JSON, and stays that. */
  open(isJson: boolean): GuardedText;
  /** Name of the guardrail by which it is blocked: of the text that it was found in nothing more is given. */
  readonly blockedBy: string | undefined;
  /** Whether somebody else has to be asked about what `open` lets pass. */
  readonly asks: boolean;
  /** Asks; gives the texts as they may be passed on, or none where they may not: then it is blocked. Never rejects. */
  ask(texts: readonly AskedText[]): Promise<readonly string[]>;
}

export interface AskedText {
  readonly text: string;
  /** The end of what of the same text was passed on before. */
  readonly before: string;
}

/** An answer whose rest its client does not get. */
export class ContentBlocked extends BlamelessError {
  constructor(guardrail: string) {
    super("content_blocked", `The guardrail \`${guardrail}\` of the operator does not let this answer pass.`);
  }
}

export function guardedWhole(guard: TextGuard, text: string, isJson: boolean): string {
  const guarded = guard.open(isJson);
  return guarded.feed(text) + guarded.end();
}
