// The parameters of an authorization request, from its query (RFC 6749, 3.1).

/**
 * Maximum characters of a query: more than any sensible request has, and few enough for a single parameter of the
 * sign-in URL.
 */
export const maxQueryLength = 4_000;

export class Parameters {
  readonly #all: readonly (readonly [string, string])[];
  readonly #values = new Map<string, string>();
  readonly #repeated = new Set<string>();

  /** `query` has no question mark; percent-encoding that is not UTF-8 is replaced by U+FFFD. */
  constructor(query: string) {
    this.#all = [...new URLSearchParams(query)];
    for (const [name, value] of this.#all) {
      if (this.#values.has(name)) this.#repeated.add(name);
      this.#values.set(name, value);
    }
  }

  /** Returns the value; undefined if the parameter is missing, empty or repeated. */
  get(name: string): string | undefined {
    const value = this.#repeated.has(name) ? undefined : this.#values.get(name);
    return value === "" ? undefined : value;
  }

  /** Returns all values of a repeatable parameter, without empty ones. */
  all(name: string): readonly string[] {
    return this.#all.filter(([of, value]) => of === name && value !== "").map(([, value]) => value);
  }

  isRepeated(name: string): boolean {
    return this.#repeated.has(name);
  }
}
