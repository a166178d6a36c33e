// Turns generated tokens into text, and holds back the bytes of an incomplete character.
import type { LlamaModel, Token } from "node-llama-cpp";

export interface TextPiece {
  text: string;
  /** The text of a control token, which is never delivered. */
  hidden: boolean;
}

/** The part of a model that turns tokens into text. */
export type Detokenizer = Pick<LlamaModel, "detokenize" | "isSpecialToken">;

/** The character that the detokenizer writes for bytes of an incomplete character. */
const incomplete = "\uFFFD";
/**
 * The most replacement characters for an incomplete character: its beginning has at most three bytes in UTF-8, each of
 * which may be shown separately.
 */
const maxIncomplete = 3;
/**
 * The number of pending tokens that are kept once there are more than twice as many. Earlier ones add no information:
 * three replacement characters stand for nine bytes at most.
 */
const maxHeldTokens = 9;
/** The earlier tokens that the library reads to place spaces. */
const trailLength = 3;

export class TokenText {
  readonly #model: Detokenizer;
  #trail: Token[];
  /** The tokens after the last token that ended at a character boundary. */
  #pending: Token[] = [];
  /** The number of UTF-16 units of the pending tokens' text that were delivered. */
  #delivered = 0;

  /** `before` are the tokens that the generated ones continue. */
  constructor(model: Detokenizer, before: readonly Token[]) {
    this.#model = model;
    this.#trail = before.slice(-trailLength);
  }

  push(token: Token): TextPiece[] {
    if (this.#model.isSpecialToken(token)) {
      const pieces = this.flush();
      pieces.push({ text: this.#model.detokenize([token], true), hidden: true });
      this.#trail = [token];
      return pieces;
    }
    this.#pending.push(token);
    const text = this.#pendingText();
    const held = heldBack(text);
    if (held === 0) return this.#settle(text);
    const piece = text.slice(this.#delivered, text.length - held);
    this.#delivered = Math.max(this.#delivered, text.length - held);
    // A token may end one character and begin the next, so a long run may have no boundary.
    if (this.#pending.length > 2 * maxHeldTokens) this.#forget(text.length - this.#delivered);
    return visible(piece);
  }

  /** Returns the held text, complete or not. */
  flush(): TextPiece[] {
    return this.#pending.length === 0 ? [] : this.#settle(this.#pendingText());
  }

  #pendingText(): string {
    return this.#model.detokenize(this.#pending, false, this.#trail);
  }

  #settle(text: string): TextPiece[] {
    const piece = text.slice(this.#delivered);
    this.#trail = [...this.#trail, ...this.#pending].slice(-trailLength);
    this.#pending = [];
    this.#delivered = 0;
    return visible(piece);
  }

  /** Forgets the first tokens. The meaning of UTF-8 at the end of a text does not depend on where the text begins. */
  #forget(heldLength: number): void {
    this.#trail = this.#pending.slice(-maxHeldTokens - trailLength, -maxHeldTokens);
    this.#pending = this.#pending.slice(-maxHeldTokens);
    this.#delivered = Math.max(0, this.#pendingText().length - heldLength);
  }
}

/** Returns the length of the suffix that the next token may still change. */
function heldBack(text: string): number {
  let held = 0;
  while (held < maxIncomplete && text[text.length - 1 - held] === incomplete) held += 1;
  return held;
}

function visible(text: string): TextPiece[] {
  return text === "" ? [] : [{ text, hidden: false }];
}
