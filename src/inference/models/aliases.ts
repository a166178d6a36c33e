// The other names of declared models: looked up where no model has the name that a client gives as its id.

interface Named {
  readonly id: string;
  readonly aliases?: readonly string[] | undefined;
}

/** An alias of a model that says nothing, as the name belongs to another one. */
export interface AliasWithoutEffect {
  readonly alias: string;
  /** Id of the model that has it. */
  readonly model: string;
  /** Id of the model that gets the requests. */
  readonly served_by: string;
}

/** Where two have the same alias, as the file and the database may, the first one counts. */
export class Aliases {
  readonly #exact = new Map<string, string>();
  /** By what stands before the `*`. */
  readonly #prefixes = new Map<string, string>();
  /** Longest first: so a look costs no more than there are lengths, however many prefixes there are. */
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

  /** Id of the model that the name stands for. */
  idOf(name: string): string | undefined {
    const exact = this.#exact.get(name);
    if (exact !== undefined) return exact;
    for (const length of this.#lengths) {
      const id = length <= name.length ? this.#prefixes.get(name.slice(0, length)) : undefined;
      if (id !== undefined) return id;
    }
    return undefined;
  }

  /** Those that another model has, or that are one of the `ids` that there are. */
  vain(ids: Pick<ReadonlySet<string>, "has">): AliasWithoutEffect[] {
    const hidden = [...this.#exact].filter(([alias]) => ids.has(alias));
    return [...this.#taken, ...hidden.map(([alias, model]) => ({ alias, model, served_by: alias }))];
  }
}
