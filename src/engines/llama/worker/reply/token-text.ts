// Turns generated tokens into text, holding back the bytes of a character that is not complete yet.
import type { LlamaModel, Token } from "node-llama-cpp";

export interface TextPiece {
  text: string;
  /** Text of a control token, which is never delivered. */
  hidden: boolean;
}

/** The part of a model that makes text of tokens. */
export type Detokenizer = Pick<LlamaModel, "detokenize" | "isSpecialToken">;

/** The character that the detokenizer writes for bytes that are not a whole character. */
const incomplete = "\uFFFD";
/** The beginning of a UTF-8 character has at most three bytes, each of which may be shown by itself. */
const maxIncomplete = 3;
/** Held tokens beyond these say nothing more: three such signs stand for nine bytes at most. */
const maxHeldTokens = 9;
/** Tokens that the library itself looks at to place spaces between tokens. */
const trailLength = 3;

export class TokenText {
  readonly #model: Detokenizer;
  #trail: Token[];
  /** The tokens from the last one on whose end was the end of a character. */
  #pending: Token[] = [];
  /** Units of UTF-16 of the pending tokens' text that were delivered. */
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
    // A token may end one character and begin the next, so a whole run of them may never end at a boundary.
    if (this.#pending.length > 2 * maxHeldTokens) this.#forget(text.length - this.#delivered);
    return visible(piece);
  }

  /** Gives out the text that is held back, complete or not. */
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

  /** Lets go of the first tokens. What UTF-8 means at the end of a text does not depend on where the text begins. */
  #forget(heldLength: number): void {
    this.#trail = this.#pending.slice(-maxHeldTokens - trailLength, -maxHeldTokens);
    this.#pending = this.#pending.slice(-maxHeldTokens);
    this.#delivered = Math.max(0, this.#pendingText().length - heldLength);
  }
}

/** Length of the end of the text that the next token may complete to something else. */
function heldBack(text: string): number {
  let held = 0;
  while (held < maxIncomplete && text[text.length - 1 - held] === incomplete) held += 1;
  return held;
}

function visible(text: string): TextPiece[] {
  return text === "" ? [] : [{ text, hidden: false }];
}
