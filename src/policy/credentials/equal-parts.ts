// Keeps once what many have in common, such as the account of many keys.

/** Where there are more, those that are known are forgotten: that they are shared is of use, never needed. */
const mostKept = 10_000;

export class EqualParts<Part> {
  readonly #parts = new Map<string, Part>();

  /** The first part of this name, which must say all of it: the others are equal. Nobody may change what is shared. */
  shared(name: string, part: Part): Part {
    const known = this.#parts.get(name);
    if (known !== undefined) return known;
    if (this.#parts.size >= mostKept) this.#parts.clear();
    this.#parts.set(name, part);
    return part;
  }

  clear(): void {
    this.#parts.clear();
  }
}
