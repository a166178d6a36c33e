// Remembers as bytes what many objects have in common.

export interface TextCacheOptions<T> {
  /** Part of what is compared: it makes the search short. */
  keyOf(value: T): string;
  /** Of two values with one key: whether their texts are the same. */
  isAlike(one: T, other: T): boolean;
  textOf(value: T): string;
}

interface Known<T> {
  value: T;
  bytes: Uint8Array;
}

const mostKeys = 4_096;
/** For one key. */
const mostTexts = 16;

export class TextCache<T> {
  readonly #options: TextCacheOptions<T>;
  readonly #known = new Map<string, Known<T>[]>();

  constructor(options: TextCacheOptions<T>) {
    this.#options = options;
  }

  /** In UTF-8; not to be changed. */
  of(value: T): Uint8Array {
    const { keyOf, isAlike } = this.#options;
    const known = this.#known.get(keyOf(value));
    if (known !== undefined) for (const one of known) if (isAlike(one.value, value)) return one.bytes;
    return this.#remember(value, known);
  }

  #remember(value: T, known: Known<T>[] | undefined): Uint8Array {
    const { keyOf, textOf } = this.#options;
    const bytes = Buffer.from(textOf(value));
    if (known !== undefined && known.length < mostTexts) {
      known.push({ value, bytes });
      return bytes;
    }
    if (this.#known.size >= mostKeys) this.#known.clear();
    this.#known.set(keyOf(value), [{ value, bytes }]);
    return bytes;
  }
}
