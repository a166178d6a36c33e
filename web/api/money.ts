// Adds money in whole billionths of a USD, as the server does: sums of floating-point USD would differ from its totals.

const billionths = 1e9;

/** Adds amounts in USD. */
export function addUsd(...amounts: readonly number[]): number {
  return amounts.reduce((all, usd) => all + wholeOf(usd), 0) / billionths;
}

/** Subtracts `parts` from `usd`; the result is never negative. */
export function usdWithout(usd: number, parts: readonly number[]): number {
  return Math.max(0, wholeOf(usd) - parts.reduce((all, part) => all + wholeOf(part), 0)) / billionths;
}

function wholeOf(usd: number): number {
  return Math.round(usd * billionths);
}
