// Keeps once what many have in common, such as the account of many keys.

/** Where there are more, those that are known are forgotten: that they are shared is of use, never needed. */
const maxKept = 10_000;

/** A longer text is kept as its digest: where no two parts are equal, the texts would take more than the parts. */
const shortest = 64;

export class EqualParts<Part> {
  readonly #parts = new Map<string, Part>();

  /** The first part of this text, which must say all of it: the others are equal. Nobody may change what is shared. */
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
