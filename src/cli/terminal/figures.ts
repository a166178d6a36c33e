// Formats and parses numbers, amounts of money, times and spans for people.

const minuteSeconds = 60;
const hourSeconds = 3600;
const daySeconds = 86_400;

/** Formats `12,345`; `-` if there is no value. */
export function formatCount(value: number | null | undefined): string {
  if (value === null || value === undefined) return "-";
  const [whole = "", fraction] = String(value).split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/** Formats USD with `digits` decimals, by default as many as the amount needs; `-` if there is no value. */
export function formatUsd(value: number | null | undefined, digits = usdDigits([value])): string {
  if (value === null || value === undefined) return "-";
  const [whole = "", fraction = ""] = Math.abs(value).toFixed(digits).split(".");
  return `${value < 0 ? "-" : ""}$${formatCount(Number(whole))}.${fraction}`;
}

/** Formats a price or limit without the extra digits of binary fractions: `$2.5`. */
export function formatRate(usd: number): string {
  return `$${Number(usd.toPrecision(12))}`;
}

/**
 * Returns a function that formats the exact amounts of a column in USD. All get as many decimals as the longest amount
 * has, so that the shown amounts add up.
 */
export function formatUsdColumn(costs: readonly string[]): (cost: string) => string {
  const digits = Math.max(2, ...costs.map((cost) => (cost.split(".")[1] ?? "").replace(/0+$/, "").length));
  return (cost) => {
    const [whole = "", fraction = ""] = cost.split(".");
    return `${whole.replace(/\B(?=(\d{3})+$)/g, ",")}.${fraction.slice(0, digits).padEnd(digits, "0")}`;
  };
}

/** Returns how many decimals show every amount with two significant digits. A request often costs less than a cent. */
export function usdDigits(values: readonly (number | null | undefined)[]): number {
  const needed = values.map((value) => {
    const size = Math.abs(value ?? 0);
    return size === 0 || size >= 0.1 ? 2 : Math.min(9, 1 - Math.floor(Math.log10(size)));
  });
  return Math.max(2, ...needed);
}

/** Formats `2026-11-20 18:30` in this machine's time zone; `-` if there is no value. `seconds` is Unix time. */
export function formatTime(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "-";
  const date = new Date(seconds * 1000);
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
  return `${day} ${two(date.getHours())}:${two(date.getMinutes())}`;
}

/** Formats `2026-11-20 18:30:05` in this machine's time zone. `seconds` is Unix time. */
export function formatTimeWithSeconds(seconds: number): string {
  return `${formatTime(seconds)}:${two(new Date(seconds * 1000).getSeconds())}`;
}

/**
 * Seconds added to remaining times, because the API's answer takes a moment to arrive. A new link for ten minutes thus
 * shows ten minutes, not nine.
 */
const onItsWaySeconds = 5;

/**
 * Returns `3 min ago` or `in 29 days`, or the time itself if it is more than 60 days away. `seconds` is Unix time; `-`
 * if there is no value.
 */
export function formatRelative(seconds: number | null | undefined, nowSeconds: number): string {
  if (seconds === null || seconds === undefined) return "-";
  const away = Math.abs(seconds - nowSeconds);
  if (away > 60 * daySeconds) return formatTime(seconds);
  if (away < 1) return "now";
  if (seconds < nowSeconds) return `${formatSpan(away)} ago`;
  const remaining = away + onItsWaySeconds;
  return `in ${formatSpan(remaining < minuteSeconds ? away : remaining)}`;
}

/** Returns a time span in its largest useful unit: `45 s`, `3 min`, `23 h`, `29 days`. */
export function formatSpan(seconds: number): string {
  if (seconds < minuteSeconds) return `${Math.floor(seconds)} s`;
  if (seconds < hourSeconds) return `${Math.floor(seconds / minuteSeconds)} min`;
  if (seconds < 2 * daySeconds) return `${Math.floor(seconds / hourSeconds)} h`;
  return `${Math.floor(seconds / daySeconds)} days`;
}

/** Returns `2026-11-20 18:30 (3 h ago)`; `-` if there is no value. */
export function formatTimeAndRelative(seconds: number | null | undefined, nowSeconds: number): string {
  const time = formatTime(seconds);
  const relative = formatRelative(seconds, nowSeconds);
  return time === relative ? time : `${time} (${relative})`;
}

const spanUnits: Readonly<Record<string, number>> = {
  s: 1,
  m: minuteSeconds,
  min: minuteSeconds,
  h: hourSeconds,
  d: daySeconds,
  w: 7 * daySeconds,
};

/** Parses `90s`, `30m`, `12h`, `30d`, `2w` or `0` to seconds, or returns undefined. */
export function parseSpan(text: string): number | undefined {
  if (text === "0") return 0;
  const match = /^(\d{1,9})(s|m|min|h|d|w)$/.exec(text);
  const unit = spanUnits[match?.[2] ?? ""];
  return unit === undefined ? undefined : Number(match?.[1]) * unit;
}

/** Parses a date alone, such as `2026-11-20`. Returns undefined for anything else, including 31 February. */
export function parseDate(text: string): { year: number; month: number; day: number } | undefined {
  const match = /^(\d{4})-(\d{2})-(\d{2})$/.exec(text);
  if (match === null) return undefined;
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  const date = new Date(Date.UTC(year, month - 1, day));
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day ? { year, month, day } : undefined;
}

/**
 * Parses `2026-11-20T18:30` to Unix seconds, with or without seconds and a zone. A time without a zone is in this
 * machine's zone.
 */
export function parseTime(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:?\d{2})?$/.test(text)) return undefined;
  const milliseconds = Date.parse(text.replace(" ", "T"));
  return Number.isNaN(milliseconds) ? undefined : Math.floor(milliseconds / 1000);
}

function two(value: number): string {
  return String(value).padStart(2, "0");
}
