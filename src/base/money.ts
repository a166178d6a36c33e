// Money: whole nano-USD (10^-9) wherever it is added or compared, and USD where it is read or shown, and nowhere else.

const nanoUsdPerUsd = 1e9;
const digits = 9;

/**
 * Whole nano-USD as USD, for JSON and metrics. Both are whole numbers, so that the nearest double of the quotient prints as
 * the exact decimal, up to eight million USD.
 */
export function usdOf(nanoUsd: number): number {
  return nanoUsd / nanoUsdPerUsd;
}

/** USD as somebody writes them, as whole nano-USD. */
export function nanoOfUsd(usd: number): number {
  return Math.round(usd * nanoUsdPerUsd);
}

/** All digits of whole nano-USD as USD, at least so many behind the point, and never in the exponent form of a small number. */
export function usdText(nanoUsd: number | bigint, minDigits = 0): string {
  const whole = BigInt(nanoUsd);
  const all = String(whole % BigInt(nanoUsdPerUsd)).padStart(digits, "0");
  let end = digits;
  while (end > minDigits && all[end - 1] === "0") end--;
  return String(whole / BigInt(nanoUsdPerUsd)) + (end === 0 ? "" : `.${all.slice(0, end)}`);
}
