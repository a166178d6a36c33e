// Money: whole nano-USD (10^-9) wherever amounts are added or compared, and USD only where amounts are read or shown.

const nanoUsdPerUsd = 1e9;
const digits = 9;

/**
 * Converts whole nano-USD to USD, for JSON and metrics. Dividend and divisor are whole numbers, so the nearest double
 * of the quotient prints as the exact decimal, up to eight million USD.
 */
export function usdOf(nanoUsd: number): number {
  return nanoUsd / nanoUsdPerUsd;
}

/** Converts USD as a person writes them to whole nano-USD. */
export function nanoOfUsd(usd: number): number {
  return Math.round(usd * nanoUsdPerUsd);
}

/** Writes all digits of whole nano-USD as USD, with at least `minDigits` after the point and never in exponent form. */
export function usdText(nanoUsd: number | bigint, minDigits = 0): string {
  const whole = BigInt(nanoUsd);
  const all = String(whole % BigInt(nanoUsdPerUsd)).padStart(digits, "0");
  let end = digits;
  while (end > minDigits && all[end - 1] === "0") end--;
  return String(whole / BigInt(nanoUsdPerUsd)) + (end === 0 ? "" : `.${all.slice(0, end)}`);
}
