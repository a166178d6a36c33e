// Aliases of declared models. An alias is used if no model has the requested name as its id.

interface Named {
  readonly id: string;
  readonly aliases?: readonly string[] | undefined;
}

/** An alias without effect, because another model has the same name. */
export interface AliasWithoutEffect {
  readonly alias: string;
  /** Id of the model that declares the alias. */
  readonly model: string;
  /** Id of the model that gets the requests. */
  readonly served_by: string;
}

/**
 * Finds models by alias. If two models have the same alias, the first model counts. This can happen if one is in the
 * file and one in the database.
 */
export class Aliases {
  readonly #exact = new Map<string, string>();
  /** Ids of models by the prefix of an alias, which is the alias without the `*` at its end. */
  readonly #prefixes = new Map<string, string>();
  /** The different lengths of prefixes, longest first. A look-up takes one step for each length. */
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

  /** Returns the id of the model that has this alias, or undefined if there is none. */
  idOf(name: string): string | undefined {
    const exact = this.#exact.get(name);
    if (exact !== undefined) return exact;
    for (const length of this.#lengths) {
      const id = length <= name.length ? this.#prefixes.get(name.slice(0, length)) : undefined;
      if (id !== undefined) return id;
    }
    return undefined;
  }

  /** Returns the aliases without effect: another model has the same alias, or a model has it as its id. */
  withoutEffect(ids: Pick<ReadonlySet<string>, "has">): AliasWithoutEffect[] {
    const hidden = [...this.#exact].filter(([alias]) => ids.has(alias));
    return [...this.#taken, ...hidden.map(([alias, model]) => ({ alias, model, served_by: alias }))];
  }
}
