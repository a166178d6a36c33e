// Turns generated tokens into text, holding back the tokens of a character that is not complete yet.
import type { LlamaModel, Token } from "node-llama-cpp";

export interface TextPiece {
  text: string;
  /** Text of a control token, which is never delivered. */
  hidden: boolean;
}

/** What the detokenizer writes for bytes that are not a whole character. */
const incomplete = "\uFFFD";
/** A UTF-8 character has at most four bytes, so at most four tokens; a model that writes rubbish is let through. */
const mostTokensOfCharacter = 4;
/** As many as the library itself looks at to place spaces between tokens. */
const trailLength = 3;

export class TokenText {
  readonly #model: LlamaModel;
  #trail: Token[];
  #pending: Token[] = [];

  /** `before` are the tokens that the generated ones continue. */
  constructor(model: LlamaModel, before: readonly Token[]) {
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
    const text = this.#model.detokenize(this.#pending, false, this.#trail);
    if (text.endsWith(incomplete) && this.#pending.length < mostTokensOfCharacter) return [];
    return this.#deliver(text);
  }

  /** What is held back, complete or not. */
  flush(): TextPiece[] {
    if (this.#pending.length === 0) return [];
    return this.#deliver(this.#model.detokenize(this.#pending, false, this.#trail));
  }

  #deliver(text: string): TextPiece[] {
    this.#trail = [...this.#trail, ...this.#pending].slice(-trailLength);
    this.#pending = [];
    return text === "" ? [] : [{ text, hidden: false }];
  }
}
