// Numbers, sums, times and durations as people read them.
import { nowSeconds } from "../api/server-time.ts";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const dateTimeSeconds = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const date = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });

/** All digits: 12,345. */
export function count(value: number): string {
  return whole.format(value);
}

/** As short as a tile or an axis needs it: 12.3K. */
export function short(value: number): string {
  return Math.abs(value) < 10_000 ? whole.format(value) : compact.format(value);
}

/** USD, with as many digits as a small sum needs to be told from nothing. */
export function money(usd: number): string {
  const digits = usd === 0 || Math.abs(usd) >= 1 ? 2 : Math.abs(usd) >= 0.01 ? 4 : 6;
  return new Intl.NumberFormat("en", {
    style: "currency",
    currency: "USD",
    minimumFractionDigits: 2,
    maximumFractionDigits: digits,
  }).format(usd);
}

/** Of tokens and the like a second: 7.5, 124. */
export function perSecond(value: number): string {
  return value < 10 ? value.toFixed(1) : count(value);
}

/** A part of one, as percent. */
export function percent(part: number): string {
  return new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: part < 0.1 ? 1 : 0 }).format(part);
}

export function duration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`;
  return span(ms / 1000);
}

/** Whole seconds as the two largest units: 2 h 5 min. */
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

/** Unix seconds as a date and time of the reader's zone. */
export function at(seconds: number): string {
  return dateTime.format(seconds * 1000);
}

export function atSecond(seconds: number): string {
  return dateTimeSeconds.format(seconds * 1000);
}

export function day(seconds: number): string {
  return date.format(seconds * 1000);
}

/** How long ago, or in how long: "5 minutes ago". */
export function ago(seconds: number, now = nowSeconds()): string {
  const distance = seconds - now;
  const size = Math.abs(distance);
  if (size < 45) return distance <= 0 ? "just now" : "in a moment";
  if (size < 45 * 60) return relative.format(Math.round(distance / 60), "minute");
  if (size < 22 * 3600) return relative.format(Math.round(distance / 3600), "hour");
  if (size < 45 * 86_400) return relative.format(Math.round(distance / 86_400), "day");
  if (size < 548 * 86_400) return relative.format(Math.round(distance / (30.44 * 86_400)), "month");
  return relative.format(Math.round(distance / (365.25 * 86_400)), "year");
}
