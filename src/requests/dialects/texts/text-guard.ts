// Checks the texts of requests and answers. Code that finds these texts calls the guardrails through this interface.
import type { Cancellation } from "../../../base/cancellation.ts";
import { BlamelessError } from "../../../base/errors.ts";
import type { TextSlot } from "./text-slots.ts";

/** A text that arrives in pieces. Each call returns the part that may now be passed on. */
export interface GuardedText {
  feed(piece: string): string;
  /** Ends the text, and returns the last part of it that may be passed on. */
  end(): string;
}

/** Guards the texts of one request, or of the answer to it. */
export interface TextGuard {
  /** Begins a text. If `isJson` is true, the text is JSON, and must still be valid JSON after the check. */
  open(isJson: boolean): GuardedText;
  /** Name of the guardrail that blocks the text. After a block, nothing more of the text is returned. */
  readonly blockedBy: string | undefined;
  /** True if an external service must also check the texts that `open` returned. */
  readonly asks: boolean;
  /** Maximum number of characters that are checked in one tick, for whole texts. */
  readonly pieceLength: number;
  /** Bytes of memory that the check of one more text needs, in addition to the text. */
  readonly bytesOfText: number;
  /**
   * Asks the external service. Returns the texts in the form that may be passed on. Returns an empty list if the guard
   * blocks them. Never rejects.
   */
  ask(texts: readonly AskedText[]): Promise<readonly string[]>;
}

export interface AskedText {
  readonly text: string;
  /** The last characters that were passed on before this text, as context for the check. */
  readonly before: string;
}

/** The error for an answer that a guardrail blocks. The client does not get the remaining part of the answer. */
export class ContentBlocked extends BlamelessError {
  constructor(guardrail: string) {
    super("content_blocked", `The guardrail \`${guardrail}\` of the operator does not let this answer pass.`);
  }
}

/**
 * Number of pieces that are joined in one tick. Concatenated strings are copied only when they are read. Reading a text
 * of millions of parts would then block for 0.3 s.
 */
const piecesOfPart = 64;
/**
 * Number of characters that each text counts in addition to its length, because the check of a text itself takes time.
 */
const charactersOfText = 16;

/**
 * Checks whole texts, replaces each text by the text that may be passed on, and reports whether any text changed. If
 * `clientGone` is cancelled, rejects with its reason.
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
  // All texts together share the number of characters of one tick, because a request may have millions of short texts.
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
