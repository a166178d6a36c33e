// Checks the texts of requests and answers. Code that finds these texts calls guardrails through this interface.
import type { Cancellation } from "../../../base/cancellation.ts";
import { BlamelessError } from "../../../base/errors.ts";
import type { TextSlot } from "./text-slots.ts";

/** A text that arrives in pieces. Each call returns the part that may be passed on. */
export interface GuardedText {
  feed(piece: string): string;
  /** Ends the text, and returns the last part that may be passed on. */
  end(): string;
}

/** Guards the texts of one request, or of its answer. */
export interface TextGuard {
  /** Begins a text. If `isJson` is true, the text is JSON and must stay valid JSON. */
  open(isJson: boolean): GuardedText;
  /** Name of the guardrail that blocks the text. After a block, no more of the text is returned. */
  readonly blockedBy: string | undefined;
  /** True if an external service must also check the texts that `open` returned. */
  readonly asks: boolean;
  /** Maximum number of characters of a whole text that are checked in one tick. */
  readonly pieceLength: number;
  /** Bytes of memory for the check of one more text, beside the text. */
  readonly bytesOfText: number;
  /**
   * Asks the external service. Returns the texts as they may be passed on, or an empty list if the guard blocks them.
   * Never rejects.
   */
  ask(texts: readonly AskedText[]): Promise<readonly string[]>;
}

export interface AskedText {
  readonly text: string;
  /** The last characters that were passed on, as context for the check. */
  readonly before: string;
}

/** The error for an answer that a guardrail blocks. The client does not get the rest of the answer. */
export class ContentBlocked extends BlamelessError {
  constructor(guardrail: string) {
    super("content_blocked", `The guardrail \`${guardrail}\` of the operator does not let this answer pass.`);
  }
}

/**
 * Pieces that are joined in one tick. Concatenated strings are copied only when they are read, and a text of millions
 * of parts then blocks for 0.3 s.
 */
const piecesOfPart = 64;
/** Each text takes as long to check as this many further characters. */
const charactersOfText = 16;

/**
 * Checks whole texts, replaces each by the text that may be passed on, and reports whether any changed. Rejects with
 * the reason of `clientGone` after its cancellation.
 */
export async function checkTexts(
  slots: Iterable<TextSlot>,
  guard: TextGuard,
  clientGone?: Cancellation,
): Promise<boolean> {
  const asked: { slot: TextSlot; given: string }[] = [];
  let isChanged = false;
  const change = ({ text, put }: TextSlot, given: string) => {
    if (given === text) return;
    isChanged = true;
    put(given);
  };
  const { pieceLength } = guard;
  // All texts share the characters of one tick, because a request may have millions of short texts.
  let room = pieceLength;
  for (const slot of slots) {
    const { text, isJson } = slot;
    const guarded = guard.open(isJson);
    const parts: string[] = [];
    let pieces: string[] = [];
    for (let from = 0; from < text.length; ) {
      if (room <= 0) {
        await new Promise<void>((resolve) => setImmediate(resolve));
        room = pieceLength;
      }
      if (clientGone?.cancelled) throw clientGone.reason;
      const piece = text.slice(from, from + room);
      from += piece.length;
      room -= piece.length;
      pieces.push(guarded.feed(piece));
      if (pieces.length < piecesOfPart) continue;
      parts.push(pieces.join(""));
      pieces = [];
    }
    room -= charactersOfText;
    const given = [...parts, ...pieces, guarded.end()].join("");
    if (guard.asks) asked.push({ slot, given });
    else change(slot, given);
  }
  const isAsked = guard.blockedBy === undefined && asked.length > 0;
  const answers = isAsked ? await guard.ask(asked.map(({ given }) => ({ text: given, before: "" }))) : undefined;
  asked.forEach(({ slot, given }, index) => {
    change(slot, answers === undefined ? given : (answers[index] ?? ""));
  });
  return isChanged;
}

export function guardedWhole(guard: TextGuard, text: string, isJson: boolean): string {
  const guarded = guard.open(isJson);
  return guarded.feed(text) + guarded.end();
}
