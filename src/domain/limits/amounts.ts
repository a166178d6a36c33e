// The amounts of limits that tiers, accounts and keys are given: what the API, headrace.yaml, the tables, the command line and
// the dashboard know of each. `policy/limits-of.ts` makes them into limits that hold.

interface AmountRow {
  /** The name in the code. */
  readonly name: string;
  /** The name on the wire, in headrace.yaml and of the column; with hyphens, the option of the command line. */
  readonly wire: string;
  /** Whole numbers, except of USD. */
  readonly unit: "requests" | "tokens" | "USD";
  readonly period: keyof typeof periods;
  readonly least: number;
  readonly most: number;
  /** An example for the error message. */
  readonly example: number;
  /** Whether a tier has to say it. Where it does not, as where it says null, there is no limit. */
  readonly required: boolean;
  /** Whether an account may have one in place of its tier's: left out, it is the tier's, null is no limit. */
  readonly account: boolean;
  /** Whether a key may have one of its own, within those of its makers; null is none. */
  readonly key: boolean;
}

const periods = { minute: "minute", month: "calendar month (UTC)" } as const;
const perMinute = { period: "minute", least: 1, most: 1e9, required: true, account: false, key: false } as const;
const perMonth = { period: "month", least: 0, required: false, account: true, key: true } as const;

/**
 * All amounts, in the order in which they are shown. A key's `rate_limit` is none of them: it means nothing without its
 * window.
 */
export const amounts = [
  { name: "requestsPerMinute", wire: "requests_per_minute", unit: "requests", example: 100, ...perMinute },
  { name: "tokensPerMinute", wire: "tokens_per_minute", unit: "tokens", example: 100_000, ...perMinute },
  { name: "monthlyTokens", wire: "monthly_tokens", unit: "tokens", most: 1e15, example: 5_000_000, ...perMonth },
  // The most is still an exact number in nano-USD.
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

/** An object of the code with a member for each amount. */
export function byName<Each extends Amount, Value>(
  some: readonly Each[],
  of: (amount: Each) => Value,
): ByName<Each, Value> {
  return Object.fromEntries(some.map((amount) => [amount.name, of(amount)])) as ByName<Each, Value>;
}

/** The same as the API, the configuration file or a row has it. */
export function byWire<Each extends Amount, Value>(
  some: readonly Each[],
  of: (amount: Each) => Value,
): ByWire<Each, Value> {
  return Object.fromEntries(some.map((amount) => [amount.wire, of(amount)])) as ByWire<Each, Value>;
}

/** `tokens per calendar month (UTC)`, or with another word for `per`. */
export function amountText({ unit, period }: Amount, per = "per"): string {
  return `${unit} ${per} ${periods[period]}`;
}

export function amountSentence(amount: Amount, per?: string): string {
  return capitalised(amountText(amount, per));
}

/** The head of a column, the label of a field: `Tokens per month`, `Spend per month`. */
export function amountLabel({ unit, period }: Amount): string {
  return `${unit === "USD" ? "Spend" : capitalised(unit)} per ${period}`;
}

function capitalised(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
