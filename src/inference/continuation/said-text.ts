// The text of an answer as far as it was delivered, kept so that another server can go on from there.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { GatewayError } from "../../base/errors.ts";
import type { SaidListener } from "../../requests/dialects/answer.ts";

/** Nothing is kept of a longer answer. */
const maxBytes = 1024 * 1024;
/** Pieces are gathered into blocks of so many characters: a string of very many pieces takes far more memory than its text. */
const blockCharacters = 2048;

export class SaidText implements SaidListener {
  readonly countedPrompts: (number | undefined)[] = [];
  readonly #memoryAccount: MemoryAccount;
  #blocks: Buffer[] = [];
  #recent = "";
  /** Those of the blocks, which are on the account of the request. */
  #bytes = 0;
  #isText = true;
  /** Whether the server that answers now was given the text so far. */
  isGiven = false;

  constructor(memoryAccount: MemoryAccount) {
    this.#memoryAccount = memoryAccount;
  }

  text(text: string): void {
    if (!this.#isText) return;
    this.#recent += text;
    if (this.#recent.length >= blockCharacters) this.#gather();
  }

  thought(): void {
    this.other();
    if (this.isGiven)
      throw new GatewayError("upstream_error", "The model server that went on with the answer began anew.");
  }

  other(): void {
    this.#isText = false;
    this.release();
  }

  /** Undefined where it is not known, or was no text alone. */
  get whole(): string | undefined {
    if (!this.#isText) return undefined;
    const text = Buffer.concat(this.#blocks).toString() + this.#recent;
    // Half a character is no text that could be sent.
    return text.isWellFormed() ? text : undefined;
  }

  /** Nothing of it came to anybody: an answer begins anew. */
  restart(): void {
    this.release();
    this.countedPrompts.length = 0;
    this.#isText = true;
    this.isGiven = false;
  }

  release(): void {
    if (this.#bytes > 0) this.#memoryAccount.release("continued", this.#bytes);
    this.#blocks = [];
    this.#recent = "";
    this.#bytes = 0;
  }

  #gather(): void {
    // The other half of a character comes with the next piece.
    if (!this.#recent.isWellFormed()) {
      if (this.#recent.length >= 2 * blockCharacters) this.other();
      return;
    }
    const block = Buffer.from(this.#recent);
    if (this.#bytes + block.length > maxBytes || this.#memoryAccount.take("continued", block.length)) {
      this.other();
      return;
    }
    this.#bytes += block.length;
    this.#blocks.push(block);
    this.#recent = "";
  }
}
