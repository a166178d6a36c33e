// Converts generated tokens to text. Holds back the bytes of an incomplete UTF-8 character.
import type { LlamaModel, Token } from "node-llama-cpp";

export interface TextPiece {
  text: string;
  /** True for the text of a control token, which is never delivered. */
  hidden: boolean;
}

/** The part of a model that turns tokens into text. */
export type Detokenizer = Pick<LlamaModel, "detokenize" | "isSpecialToken">;

/** The replacement character that the detokenizer writes for incomplete UTF-8. */
const incomplete = "\uFFFD";
/**
 * The most replacement characters for one incomplete character, which has at most three bytes, each shown
 * separately.
 */
const maxIncomplete = 3;
/**
 * If more than twice this number of tokens is pending, only the last `maxHeldTokens` are kept. Three replacement
 * characters stand for at most nine bytes, so earlier tokens do not matter.
 */
const maxHeldTokens = 9;
/** The number of earlier tokens that the detokenizer needs to place spaces. */
const trailLength = 3;

export class TokenText {
  readonly #model: Detokenizer;
  #trail: Token[];
  /** The tokens since the last complete character. */
  #pending: Token[] = [];
  /** The number of UTF-16 units of the pending tokens' text that were delivered. */
  #delivered = 0;

  /** `before` are the tokens of the prompt, which the generated tokens continue. */
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
    // Tokens may end one character and begin the next, so a long run of pending tokens may have no boundary.
    if (this.#pending.length > 2 * maxHeldTokens) this.#forget(text.length - this.#delivered);
    return visible(piece);
  }

  /** Returns the text that is held back, even if it is incomplete. */
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

  /**
   * Drops all pending tokens except the last `maxHeldTokens`. The text of the remaining tokens does not depend on the
   * dropped ones.
   */
  #forget(heldLength: number): void {
    this.#trail = this.#pending.slice(-maxHeldTokens - trailLength, -maxHeldTokens);
    this.#pending = this.#pending.slice(-maxHeldTokens);
    this.#delivered = Math.max(0, this.#pendingText().length - heldLength);
  }
}

/** Returns the length of the end of the text that the next token may change. */
function heldBack(text: string): number {
  let held = 0;
  while (held < maxIncomplete && text[text.length - 1 - held] === incomplete) held += 1;
  return held;
}

function visible(text: string): TextPiece[] {
  return text === "" ? [] : [{ text, hidden: false }];
}
