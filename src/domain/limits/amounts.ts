// The amounts of limits that tiers, accounts and keys may have, as the API, headrace.yaml, the tables, the command line
// and the dashboard know them. `policy/limits-of.ts` makes limits of them.

interface AmountRow {
  /** The name in the code. */
  readonly name: string;
  /** The name in the API, in headrace.yaml and of the column; with hyphens, the option of the command line. */
  readonly wire: string;
  /** Amounts are whole numbers, except of USD. */
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
  /** True if a key may have its own amount, within those of its makers. null: the key has none. */
  readonly key: boolean;
}

const periods = { minute: "minute", month: "calendar month (UTC)" } as const;
const perMinute = { period: "minute", least: 1, most: 1e9, required: true, account: false, key: false } as const;
const perMonth = { period: "month", least: 0, required: false, account: true, key: true } as const;

/**
 * The amounts in the order in which they are shown. A key's `rate_limit` is not among them, because it needs its
 * window.
 */
export const amounts = [
  { name: "requestsPerMinute", wire: "requests_per_minute", unit: "requests", example: 100, ...perMinute },
  { name: "tokensPerMinute", wire: "tokens_per_minute", unit: "tokens", example: 100_000, ...perMinute },
  { name: "monthlyTokens", wire: "monthly_tokens", unit: "tokens", most: 1e15, example: 5_000_000, ...perMonth },
  // The maximum is still an exact number in nano-USD.
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

/** Makes an object with a member for each amount, by its name in the code. */
export function byName<Each extends Amount, Value>(
  some: readonly Each[],
  of: (amount: Each) => Value,
): ByName<Each, Value> {
  return Object.fromEntries(some.map((amount) => [amount.name, of(amount)])) as ByName<Each, Value>;
}

/** Makes an object with a member for each amount, by its name on the wire. */
export function byWire<Each extends Amount, Value>(
  some: readonly Each[],
  of: (amount: Each) => Value,
): ByWire<Each, Value> {
  return Object.fromEntries(some.map((amount) => [amount.wire, of(amount)])) as ByWire<Each, Value>;
}

/** Returns `tokens per calendar month (UTC)`, or the same text with another word instead of `per`. */
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
