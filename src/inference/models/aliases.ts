// Aliases of declared models: used if no model has the requested name as its id.

interface Named {
  readonly id: string;
  readonly aliases?: readonly string[] | undefined;
}

/** An alias that has no effect, because another model has the name. */
export interface AliasWithoutEffect {
  readonly alias: string;
  /** Id of the model that declares the alias. */
  readonly model: string;
  /** Id of the model that gets the requests. */
  readonly served_by: string;
}

/** If two models have the same alias, as in the file and the database, the first one counts. */
export class Aliases {
  readonly #exact = new Map<string, string>();
  /** Model ids by the prefix of an alias that ends in `*`. */
  readonly #prefixes = new Map<string, string>();
  /** Lengths of all prefixes, longest first, so that a look-up takes one step per length. */
  readonly #lengths: readonly number[];
  readonly #taken: readonly AliasWithoutEffect[];

  constructor(models: readonly Named[]) {
    const taken: AliasWithoutEffect[] = [];
    for (const { id, aliases = [] } of models) {
      for (const alias of aliases) {
        const isPrefix = alias.endsWith("*");
        const names = isPrefix ? this.#prefixes : this.#exact;
        const name = isPrefix ? alias.slice(0, -1) : alias;
        const owner = names.get(name);
        if (owner === undefined) names.set(name, id);
        else if (owner !== id) taken.push({ alias, model: id, served_by: owner });
      }
    }
    this.#taken = taken;
    this.#lengths = [...new Set([...this.#prefixes.keys()].map(({ length }) => length))].sort((a, b) => b - a);
  }

  /** Returns the id of the model that has this alias; undefined if none has. */
  idOf(name: string): string | undefined {
    const exact = this.#exact.get(name);
    if (exact !== undefined) return exact;
    for (const length of this.#lengths) {
      const id = length <= name.length ? this.#prefixes.get(name.slice(0, length)) : undefined;
      if (id !== undefined) return id;
    }
    return undefined;
  }

  /** Returns the aliases that have no effect: another model has the alias, or it equals an existing model id. */
  withoutEffect(ids: Pick<ReadonlySet<string>, "has">): AliasWithoutEffect[] {
    const hidden = [...this.#exact].filter(([alias]) => ids.has(alias));
    return [...this.#taken, ...hidden.map(([alias, model]) => ({ alias, model, served_by: alias }))];
  }
}
