// The amounts of limits: whose they are, objects that have all of them, and how they read.
import { type LimitAmount, limitAmounts } from "../../api/limit-amounts.ts";
import { count, money, short } from "./figures.ts";

export const accountAmounts = limitAmounts.filter((amount) => amount.account);
export const keyAmounts = limitAmounts.filter((amount) => amount.key);

/** An object with a member for each, as the API names it. */
export function perAmount<Each extends LimitAmount, Value>(
  amounts: readonly Each[],
  of: (amount: Each) => Value,
): Record<Each["wire"], Value> {
  return Object.fromEntries(amounts.map((amount) => [amount.wire, of(amount)])) as Record<Each["wire"], Value>;
}

/** All digits: 12,345 or $25.00. */
export function amountFigure({ unit }: LimitAmount, value: number | null, none = "no limit"): string {
  if (value === null) return none;
  return unit === "USD" ? money(value) : count(value);
}

/** In a sentence: "12.3K tokens a month", "$25.00 a month", "tokens per month without limit"; nothing where none is set. */
export function amountInWords({ label, unit, period }: LimitAmount, value: number | "unlimited" | null): string[] {
  if (value === null) return [];
  if (value === "unlimited") return [`${label.toLowerCase()} without limit`];
  return [`${unit === "USD" ? money(value) : `${short(value)} ${unit}`} a ${period}`];
}
