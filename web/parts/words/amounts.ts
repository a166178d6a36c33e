// Helpers for the amounts of limits: objects with a member per amount, and amounts in words.
import { type LimitAmount, limitAmounts } from "../../api/limit-amounts.ts";
import { count, money, short } from "./figures.ts";

export const accountAmounts = limitAmounts.filter((amount) => amount.account);
export const keyAmounts = limitAmounts.filter((amount) => amount.key);

/** Returns an object with a member for each amount, named as in the API. */
export function perAmount<Each extends LimitAmount, Value>(
  amounts: readonly Each[],
  of: (amount: Each) => Value,
): Record<Each["wire"], Value> {
  return Object.fromEntries(amounts.map((amount) => [amount.wire, of(amount)])) as Record<Each["wire"], Value>;
}

/** Formats all digits: 12,345 or $25.00. */
export function amountFigure({ unit }: LimitAmount, value: number | null, none = "no limit"): string {
  if (value === null) return none;
  return unit === "USD" ? money(value) : count(value);
}

/**
 * Formats an amount for a sentence: "12.3K tokens a month", "$25.00 a month" or "tokens per month without limit".
 * Returns an empty list if no amount is set.
 */
export function amountInWords({ label, unit, period }: LimitAmount, value: number | "unlimited" | null): string[] {
  if (value === null) return [];
  if (value === "unlimited") return [`${label.toLowerCase()} without limit`];
  return [`${unit === "USD" ? money(value) : `${short(value)} ${unit}`} a ${period}`];
}
