// The tiers that accounts can have: built-in tiers, overridden by the database, overridden by the configuration file.
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

/** The tiers that apply if neither the configuration nor an operator defines them. */
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

  /** Sets the tiers of the configuration file, also after a reload. */
  configure(tiers: readonly Tier[]): void {
    this.#ofFile = tiers.map((tier) => ({ ...tier, source: "file" }));
    this.#merge();
  }

  /** Sets the tiers of the database, also after a change. Returns whether any tier changed. */
  load(tiers: readonly Tier[]): boolean {
    const before = JSON.stringify(this.#ofDatabase);
    this.#ofDatabase = tiers.map((tier) => ({ ...tier, source: "database" }));
    this.#merge();
    return JSON.stringify(this.#ofDatabase) !== before;
  }

  /** Tiers of the database, as last loaded. */
  get ofDatabase(): readonly Tier[] {
    return this.#ofDatabase;
  }

  /** Reports whether the tier would exist without the database. */
  isGivenElsewhere(name: string): boolean {
    return [...builtIn, ...this.#ofFile].some((tier) => tier.name === name);
  }

  get(name: string): KnownTier | undefined {
    return this.#merged.get(name);
  }

  /** Returns the effective figures for an account. A tier that no longer exists limits like `free`, never less. */
  find(name: string): KnownTier {
    return this.#merged.get(name) ?? this.#merged.get(free.name) ?? free;
  }

  /** Lists the built-in tiers first, then further tiers of the database, then those of the configuration file. */
  list(): KnownTier[] {
    return [...this.#merged.values()];
  }

  #merge(): void {
    this.#merged = new Map([...builtIn, ...this.#ofDatabase, ...this.#ofFile].map((tier) => [tier.name, tier]));
  }
}
