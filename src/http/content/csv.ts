// Formats tables as CSV (RFC 4180).

export const csvType = "text/csv; charset=utf-8";

/**
 * Returns one line. Prefixes an apostrophe to text that a spreadsheet would run as a formula, because names are
 * untrusted.
 */
export function csvLine(cells: readonly (string | number | null)[]): string {
  return `${cells.map(csvCell).join(",")}\r\n`;
}

/** Matches text that a spreadsheet takes for a formula, including the full-width characters of East Asian systems. */
const formula = /^[\s\p{Cc}\p{Cf}]*[=+\-@\uFF1D\uFF0B\uFF0D\uFF20]|^[\t\r\n]/u;

function csvCell(value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const text = formula.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Reports whether the `Accept` header (RFC 9110, 12.5.1) prefers CSV to JSON. */
export function prefersCsv(accept: string | null): boolean {
  const ranges = (accept ?? "").split(",").map(parseRange);
  const csv = quality(ranges, "text/csv");
  const json = quality(ranges, "application/json");
  if (csv.q === 0) return false;
  return csv.q > json.q || (csv.q === json.q && csv.specificity > json.specificity);
}

interface MediaRange {
  type: string;
  q: number;
}

function parseRange(text: string): MediaRange {
  const [type = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  const q = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2) ?? "1";
  return { type, q: /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(q) ? Number(q) : 0 };
}

/** Returns the quality value of the most specific media range that matches the type. */
function quality(ranges: readonly MediaRange[], type: string): { q: number; specificity: number } {
  const covers = ["*/*", `${type.slice(0, type.indexOf("/"))}/*`, type];
  for (let specificity = covers.length - 1; specificity >= 0; specificity--) {
    const range = ranges.find((candidate) => candidate.type === covers[specificity]);
    if (range) return { q: range.q, specificity };
  }
  return { q: 0, specificity: 0 };
}
