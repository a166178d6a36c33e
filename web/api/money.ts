// Money is added in whole billionths of a USD, as the server does: fractions would not add up to what it says.

const billionths = 1e9;

/** All of these USD together. */
export function addUsd(...amounts: readonly number[]): number {
  return amounts.reduce((all, usd) => all + wholeOf(usd), 0) / billionths;
}

/** What is left of `usd` without these, and never less than nothing. */
export function usdWithout(usd: number, parts: readonly number[]): number {
  return Math.max(0, wholeOf(usd) - parts.reduce((all, part) => all + wholeOf(part), 0)) / billionths;
}

function wholeOf(usd: number): number {
  return Math.round(usd * billionths);
}
