// Logs names in model policies to which no model or guardrail belongs. A name is logged once, and again if it was known
// in the meantime.
import type { Log } from "../../base/log.ts";
import type { Model } from "../../domain/models/model.ts";
import type { Catalog } from "./catalog.ts";

export interface PoliciesWithoutEffectOptions {
  catalog: Pick<Catalog, "list" | "get" | "find" | "complete">;
  /** Returns the guardrails of the current configuration. */
  guardrails(): readonly { readonly name: string }[];
  log: Pick<Log, "warn">;
}

export class PoliciesWithoutEffect {
  readonly #options: PoliciesWithoutEffectOptions;
  #reported: ReadonlySet<string> = new Set();

  constructor(options: PoliciesWithoutEffectOptions) {
    this.#options = options;
  }

  /** Logs the new cases. Call this when models or guardrails may have changed. */
  report(): void {
    const { catalog, log } = this.#options;
    // Until every engine was asked for its models, a model that seems to be missing may still be found.
    if (!catalog.complete) return;
    const now = new Map(
      catalog.list().flatMap((model) => this.#withoutEffect(model).map((one) => [JSON.stringify(one), one])),
    );
    for (const [text, one] of now) if (!this.#reported.has(text)) log.warn("policy_in_vain", one);
    this.#reported = new Set(now.keys());
  }

  #withoutEffect({ id, policies }: Model): Record<string, string>[] {
    if (!policies) return [];
    const { cache, guardrails = [], shadow, split = [] } = policies;
    const { catalog } = this.#options;
    const known = new Set(guardrails.length > 0 ? this.#options.guardrails().map(({ name }) => name) : []);
    const of = (policy: string, names: string, detail: string) => ({ model: id, policy, names, detail });
    const shares = [
      ...(shadow ? [["shadow", shadow.model] as const] : []),
      ...split.map(({ model }) => ["split", model] as const),
    ];
    const embedder = cache?.semantic?.embeddingModel;
    return [
      ...guardrails
        .filter((name) => !known.has(name))
        .map((name) => of("guardrails", name, "no guardrail of headrace.yaml: the model's requests are refused")),
      ...shares
        .filter(([, name]) => !catalog.get(name))
        .map(([policy, name]) => {
          const meant = catalog.find(name)?.id;
          const detail = meant === undefined ? "no model that is on offer" : `an alias: name ${meant} itself`;
          return of(policy, name, `${detail}; it gets none of the requests`);
        }),
      ...(embedder === undefined || catalog.find(embedder)
        ? []
        : [of("cache", embedder, "no model that is on offer: nothing is compared by meaning")]),
    ];
  }
}
