// The tiers that accounts can have: built in, overridden by the database, overridden by the configuration file.
import { defaultTierEnvironments, type Tier, type TierSource } from "../../domain/account.ts";
import { amounts, byName } from "../../domain/limits/amounts.ts";
import { defaultPriority } from "../../domain/models/policies/priority.ts";

export interface KnownTier extends Tier {
  source: TierSource;
}

const unlimited = { ...byName(amounts, () => null), environments: defaultTierEnvironments, priority: defaultPriority };

const free: KnownTier = {
  name: "free",
  ...unlimited,
  requestsPerMinute: 10,
  tokensPerMinute: 10_000,
  source: "built-in",
};

/** Where neither the configuration nor an operator says otherwise. */
const builtIn: readonly KnownTier[] = [
  free,
  { name: "pro", ...unlimited, requestsPerMinute: 100, tokensPerMinute: 100_000, source: "built-in" },
  { name: "enterprise", ...unlimited, requestsPerMinute: 1_000, source: "built-in" },
];

export class Tiers {
  #ofFile: readonly KnownTier[] = [];
  #ofDatabase: readonly KnownTier[] = [];
  #merged: ReadonlyMap<string, KnownTier> = new Map();

  constructor() {
    this.#merge();
  }

  /** Takes the tiers of the configuration file, also after a reload of it. */
  configure(tiers: readonly Tier[]): void {
    this.#ofFile = tiers.map((tier) => ({ ...tier, source: "file" }));
    this.#merge();
  }

  /** Takes the tiers of the database, also after a change there. Gives whether anything is another than before. */
  load(tiers: readonly Tier[]): boolean {
    const before = JSON.stringify(this.#ofDatabase);
    this.#ofDatabase = tiers.map((tier) => ({ ...tier, source: "database" }));
    this.#merge();
    return JSON.stringify(this.#ofDatabase) !== before;
  }

  /** Those of the database, as they were loaded last. */
  get ofDatabase(): readonly Tier[] {
    return this.#ofDatabase;
  }

  /** Whether it would be there without the database. */
  isGivenElsewhere(name: string): boolean {
    return [...builtIn, ...this.#ofFile].some((tier) => tier.name === name);
  }

  get(name: string): KnownTier | undefined {
    return this.#merged.get(name);
  }

  /** The figures that hold for an account: a tier that no longer exists limits like `free`, never less. */
  find(name: string): KnownTier {
    return this.#merged.get(name) ?? this.#merged.get(free.name) ?? free;
  }

  /** The built-in ones first, then in the order of their sources. */
  list(): KnownTier[] {
    return [...this.#merged.values()];
  }

  #merge(): void {
    this.#merged = new Map([...builtIn, ...this.#ofDatabase, ...this.#ofFile].map((tier) => [tier.name, tier]));
  }
}
