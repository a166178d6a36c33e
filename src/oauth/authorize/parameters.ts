// The parameters of an authorization request, as its query has them (RFC 6749, 3.1).

/** Longer than any request that makes sense, and short enough to be carried through the sign-in as one parameter. */
export const maxQueryLength = 4_000;

export class Parameters {
  readonly #all: readonly (readonly [string, string])[];
  readonly #values = new Map<string, string>();
  readonly #repeated = new Set<string>();

  /** `query`: without the question mark; percent-encoding that is not UTF-8 is replaced by U+FFFD. */
  constructor(query: string) {
    this.#all = [...new URLSearchParams(query)];
    for (const [name, value] of this.#all) {
      if (this.#values.has(name)) this.#repeated.add(name);
      this.#values.set(name, value);
    }
  }

  /** Undefined where it was left out or is empty, which is the same, and where it was repeated: no one value is the right one. */
  get(name: string): string | undefined {
    const value = this.#repeated.has(name) ? undefined : this.#values.get(name);
    return value === "" ? undefined : value;
  }

  /** All values of one that may be repeated, without empty ones. */
  all(name: string): readonly string[] {
    return this.#all.filter(([of, value]) => of === name && value !== "").map(([, value]) => value);
  }

  isRepeated(name: string): boolean {
    return this.#repeated.has(name);
  }
}
