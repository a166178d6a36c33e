// Checks the texts of requests and answers: the interface for code that finds the texts.
import type { Cancellation } from "../../../base/cancellation.ts";
import { BlamelessError } from "../../../base/errors.ts";
import type { TextSlot } from "./text-slots.ts";

/** A text that arrives in pieces. Each call returns the part that may be passed on. */
export interface GuardedText {
  feed(piece: string): string;
  /** Ends the text and returns what may be passed on of its last characters. */
  end(): string;
}

/** The guard for one side of one request. */
export interface TextGuard {
  /** If `isJson` is true, the text is JSON and must stay valid JSON. */
  open(isJson: boolean): GuardedText;
  /** Name of the guardrail that blocks the text. After a block, no more of the text is returned. */
  readonly blockedBy: string | undefined;
  /** True if a service must also check the texts that `open` returned. */
  readonly asks: boolean;
  /** Maximum number of characters of a whole text that are checked in one tick. */
  readonly pieceLength: number;
  /** Bytes of memory for the check of one more text, beside the text. */
  readonly bytesOfText: number;
  /**
   * Asks the service. Returns the texts as they may be passed on, or an empty list if the guard blocks them. Never
   * rejects.
   */
  ask(texts: readonly AskedText[]): Promise<readonly string[]>;
}

export interface AskedText {
  readonly text: string;
  /** The end of the text as passed on so far. */
  readonly before: string;
}

/** The error for an answer whose rest the client does not get. */
export class ContentBlocked extends BlamelessError {
  constructor(guardrail: string) {
    super("content_blocked", `The guardrail \`${guardrail}\` of the operator does not let this answer pass.`);
  }
}

/**
 * Checks whole texts, replaces each by the text that may be passed on, and reports whether any changed. Rejects with
 * the reason of `clientGone` after its cancellation.
 */
export async function checkTexts(
  slots: readonly TextSlot[],
  guard: TextGuard,
  clientGone?: Cancellation,
): Promise<boolean> {
  const passed: string[] = [];
  for (const { text, isJson } of slots) {
    const guarded = guard.open(isJson);
    let given = "";
    for (let from = 0; from < text.length; from += guard.pieceLength) {
      if (from > 0) await new Promise<void>((resolve) => setImmediate(resolve));
      if (clientGone?.cancelled) throw clientGone.reason;
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
