// What looks at the texts of requests and answers, as those see it who know where the texts stand.
import type { Cancellation } from "../../../base/cancellation.ts";
import { BlamelessError } from "../../../base/errors.ts";
import type { TextSlot } from "./text-slots.ts";

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
  /** Characters of a whole text that are looked at before others have their turn. */
  readonly pieceLength: number;
  /** What is needed to look at one more text, beside the text: bytes. */
  readonly bytesOfText: number;
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

/**
 * Looks at texts that are whole, puts in their places what may be passed on, and reports whether that differs anywhere. Rejects
 * with the reason of `left` once that is cancelled.
 */
export async function lookAt(slots: readonly TextSlot[], guard: TextGuard, left?: Cancellation): Promise<boolean> {
  const passed: string[] = [];
  for (const { text, isJson } of slots) {
    const guarded = guard.open(isJson);
    let given = "";
    for (let from = 0; from < text.length; from += guard.pieceLength) {
      if (from > 0) await new Promise<void>((resolve) => setImmediate(resolve));
      if (left?.cancelled) throw left.reason;
      given += guarded.feed(text.slice(from, from + guard.pieceLength));
    }
    passed.push(given + guarded.end());
  }
  const isAsked = guard.asks && guard.blockedBy === undefined && passed.length > 0;
  const answers = isAsked ? await guard.ask(passed.map((text) => ({ text, before: "" }))) : passed;
  let isChanged = false;
  slots.forEach(({ text, put }, index) => {
    const given = answers[index] ?? "";
    if (given === text) return;
    isChanged = true;
    put(given);
  });
  return isChanged;
}

export function guardedWhole(guard: TextGuard, text: string, isJson: boolean): string {
  const guarded = guard.open(isJson);
  return guarded.feed(text) + guarded.end();
}
