// Collects the delivered text of an answer, so that another server can continue it.
import type { MemoryAccount } from "../../base/bytes/buffered-bytes.ts";
import { GatewayError } from "../../base/errors.ts";
import type { SaidListener } from "../../requests/dialects/answer.ts";

/** Maximum bytes of the text. A longer answer cannot be continued. */
const maxBytes = 1024 * 1024;
/**
 * Pieces are joined into blocks of this size, because a string of many small pieces uses far more memory than
 * its text.
 */
const blockCharacters = 2048;

export class SaidText implements SaidListener {
  readonly countedPrompts: (number | undefined)[] = [];
  readonly #memoryAccount: MemoryAccount;
  #blocks: Buffer[] = [];
  #recent = "";
  /** Bytes of the blocks, which count on the memory account. */
  #bytes = 0;
  #isText = true;
  /** True if the current server got the text delivered so far as part of its prompt. */
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

  /** The whole text. Undefined if the text is too long, or if the answer contains anything else than text. */
  get whole(): string | undefined {
    if (!this.#isText) return undefined;
    const text = Buffer.concat(this.#blocks).toString() + this.#recent;
    // A text that ends within a surrogate pair cannot be sent to another server.
    return text.isWellFormed() ? text : undefined;
  }

  /** Starts again with an empty text. */
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
    // If the text ends within a surrogate pair, the other half is in the next piece.
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
