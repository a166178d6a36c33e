// Stores equal parts of many objects once, such as the account of many keys.

/** Maximum remembered parts. Beyond this number, all parts are forgotten, which only costs memory. */
const maxKept = 10_000;

/**
 * Texts longer than this are stored as digests: if no parts are equal, the texts would take more memory than the parts.
 */
const shortest = 64;

export class EqualParts<Part> {
  readonly #parts = new Map<string, Part>();

  /**
   * Returns the first part with this text. The text must describe the part completely, and nobody may change the part.
   */
  shared(text: string, part: Part): Part {
    const name = text.length > shortest ? Bun.SHA256.hash(text, "base64") : text;
    const known = this.#parts.get(name);
    if (known !== undefined) return known;
    if (this.#parts.size >= maxKept) this.#parts.clear();
    this.#parts.set(name, part);
    return part;
  }

  clear(): void {
    this.#parts.clear();
  }
}
