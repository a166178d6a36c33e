// Formats numbers, sums, times and durations for people.
import { nowSeconds } from "../../api/server-time.ts";
import { numberFormat, timeFormat, whenUsed } from "./formats.ts";

const whole = numberFormat({ maximumFractionDigits: 0 });
const compact = numberFormat({ notation: "compact", maximumFractionDigits: 1 });
const dollars = { style: "currency", currency: "USD", minimumFractionDigits: 2 } as const;
const cents = numberFormat({ ...dollars, maximumFractionDigits: 2 });
const partsOfCents = numberFormat({ ...dollars, maximumFractionDigits: 4 });
const smallPartsOfCents = numberFormat({ ...dollars, maximumFractionDigits: 6 });
const exactDollars = numberFormat({ ...dollars, maximumFractionDigits: 9 });
const wholePercent = numberFormat({ style: "percent", maximumFractionDigits: 0 });
const smallPercent = numberFormat({ style: "percent", maximumFractionDigits: 1 });
const dateTime = timeFormat({ dateStyle: "medium", timeStyle: "short" });
const dateTimeSeconds = timeFormat({ dateStyle: "medium", timeStyle: "medium" });
const date = timeFormat({ dateStyle: "medium" });
const relative = whenUsed(() => new Intl.RelativeTimeFormat("en", { numeric: "auto" }));

/** Formats all digits: 12,345. */
export function count(value: number): string {
  return whole().format(value);
}

/** Returns "1 request" or "12,345 requests"; `many` is the plural, by default with an s. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** Formats a number briefly for tiles and axes: 12.3K. */
export function short(value: number): string {
  return Math.abs(value) < 10_000 ? whole().format(value) : compact().format(value);
}

/** Formats USD, with more digits for small sums. */
export function money(usd: number): string {
  const format = usd === 0 || Math.abs(usd) >= 1 ? cents : Math.abs(usd) >= 0.01 ? partsOfCents : smallPartsOfCents;
  return format().format(usd);
}

/** Formats USD per million tokens and other rates with all digits, because a rate must not be rounded. */
export function rate(usd: number): string {
  return exactDollars().format(usd);
}

/** Formats exact sums of USD with as many digits as the longest needs, so that a column adds up: 1,234.50. */
export function usdColumn(costs: readonly string[]): (cost: string) => string {
  const parts = (cost: string) => cost.split(".") as [string, string?];
  const digits = Math.max(2, ...costs.map((cost) => (parts(cost)[1] ?? "").replace(/0+$/, "").length));
  return (cost) => {
    const [dollars, fraction = ""] = parts(cost);
    return `${count(Number(dollars))}.${fraction.slice(0, digits).padEnd(digits, "0")}`;
  };
}

/** Formats a speed, such as tokens per second: 7.5, 124. */
export function perSecond(value: number): string {
  return value < 10 ? value.toFixed(1) : count(value);
}

/** Formats a fraction as a percentage. */
export function percent(part: number): string {
  return (part < 0.1 ? smallPercent : wholePercent)().format(part);
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return span(ms / 1000);
}

/** Formats whole seconds in the two largest units: 2 h 5 min. */
export function span(seconds: number): string {
  const units: [number, string][] = [
    [86_400, "d"],
    [3_600, "h"],
    [60, "min"],
    [1, "s"],
  ];
  const first = units.findIndex(([size]) => seconds >= size);
  if (first < 0) return "0 s";
  let rest = Math.round(seconds);
  const parts: string[] = [];
  for (const [size, name] of units.slice(first, first + 2)) {
    const amount = Math.floor(rest / size);
    rest -= amount * size;
    if (amount > 0) parts.push(`${amount} ${name}`);
  }
  return parts.join(" ");
}

export function bytes(value: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  const power = value < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(value) / 3));
  return `${(value / 1000 ** power).toFixed(power === 0 || value / 1000 ** power >= 100 ? 0 : 1)} ${units[power]}`;
}

/** Formats Unix seconds as date and time in the reader's zone. */
export function at(seconds: number): string {
  return dateTime().format(seconds * 1000);
}

export function atSecond(seconds: number): string {
  return dateTimeSeconds().format(seconds * 1000);
}

export function day(seconds: number): string {
  return date().format(seconds * 1000);
}

/** Formats a time relative to now: "5 minutes ago". */
export function ago(seconds: number, now = nowSeconds()): string {
  const distance = seconds - now;
  const size = Math.abs(distance);
  if (size < 45) return distance <= 0 ? "just now" : "in a moment";
  if (size < 45 * 60) return relative().format(Math.round(distance / 60), "minute");
  if (size < 22 * 3600) return relative().format(Math.round(distance / 3600), "hour");
  if (size < 45 * 86_400) return relative().format(Math.round(distance / 86_400), "day");
  if (size < 548 * 86_400) return relative().format(Math.round(distance / (30.44 * 86_400)), "month");
  return relative().format(Math.round(distance / (365.25 * 86_400)), "year");
}
