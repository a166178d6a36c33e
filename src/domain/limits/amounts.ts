// The limits that tiers, accounts and keys may have. The API, headrace.yaml, the database, the command line and the
// dashboard all use this table. `policy/limits-of.ts` computes the limits.

interface AmountRow {
  /** The name in the code. */
  readonly name: string;
  /** The amount's name in the API, in headrace.yaml and in the database. On the command line it has hyphens. */
  readonly wire: string;
  /** The unit. Amounts are whole numbers, except amounts of USD. */
  readonly unit: "requests" | "tokens" | "USD";
  readonly period: keyof typeof periods;
  readonly least: number;
  readonly most: number;
  /** An example for the error message. */
  readonly example: number;
  /** True if every tier must set the amount. An optional amount that is missing or null means no limit. */
  readonly required: boolean;
  /**
   * True if an account may override its tier's amount. A missing override means the tier's amount; null means no limit.
   */
  readonly account: boolean;
  /**
   * True if a key may have its own amount, in addition to those of its parent keys. Null means that the key has none.
   */
  readonly key: boolean;
}

const periods = { minute: "minute", month: "calendar month (UTC)" } as const;
const perMinute = { period: "minute", least: 1, most: 1e9, required: true, account: false, key: false } as const;
const perMonth = { period: "month", least: 0, required: false, account: true, key: true } as const;

/**
 * The amounts in the order in which they are shown. A key's `rate_limit` is missing here, because its window can be
 * chosen.
 */
export const amounts = [
  { name: "requestsPerMinute", wire: "requests_per_minute", unit: "requests", example: 100, ...perMinute },
  { name: "tokensPerMinute", wire: "tokens_per_minute", unit: "tokens", example: 100_000, ...perMinute },
  { name: "monthlyTokens", wire: "monthly_tokens", unit: "tokens", most: 1e15, example: 5_000_000, ...perMonth },
  // This maximum can still be represented exactly in nano-USD.
  { name: "monthlySpend", wire: "monthly_spend", unit: "USD", most: 9_000_000, example: 50, ...perMonth },
] as const satisfies readonly AmountRow[];

export type Amount = (typeof amounts)[number];
export const requiredAmounts = amounts.filter((amount) => amount.required);
export const optionalAmounts = amounts.filter((amount) => !amount.required);
export const accountAmounts = amounts.filter((amount) => amount.account);
export const keyAmounts = amounts.filter((amount) => amount.key);
export type AccountAmount = (typeof accountAmounts)[number];
export type KeyAmount = (typeof keyAmounts)[number];

export type ByName<Each extends Amount, Value> = { [One in Each as One["name"]]: Value };
export type ByWire<Each extends Amount, Value> = { [One in Each as One["wire"]]: Value };

/** Returns an object with a member for each amount, under the amount's name in the code. */
export function byName<Each extends Amount, Value>(
  some: readonly Each[],
  of: (amount: Each) => Value,
): ByName<Each, Value> {
  return Object.fromEntries(some.map((amount) => [amount.name, of(amount)])) as ByName<Each, Value>;
}

/** Returns an object with a member for each amount, under the amount's name in the API. */
export function byWire<Each extends Amount, Value>(
  some: readonly Each[],
  of: (amount: Each) => Value,
): ByWire<Each, Value> {
  return Object.fromEntries(some.map((amount) => [amount.wire, of(amount)])) as ByWire<Each, Value>;
}

/** Returns text such as `tokens per calendar month (UTC)`. `per` replaces the word "per". */
export function amountText({ unit, period }: Amount, per = "per"): string {
  return `${unit} ${per} ${periods[period]}`;
}

export function amountSentence(amount: Amount, per?: string): string {
  return capitalised(amountText(amount, per));
}

/** Returns the label of a column or field: `Tokens per month`, `Spend per month`. */
export function amountLabel({ unit, period }: Amount): string {
  return `${unit === "USD" ? "Spend" : capitalised(unit)} per ${period}`;
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
