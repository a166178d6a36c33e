// Parses times in options: a date in UTC, or a time in this machine's time zone.
import { InvalidArgumentError } from "commander";
import { parseDate, parseTime } from "./figures.ts";

export function parseStart(text: string): number {
  return parseWhen(text, 0);
}

export function parseEnd(text: string): number {
  return parseWhen(text, 1);
}

/**
 * Parses a date or time to Unix seconds. For a date alone, returns the beginning of that day in UTC, `dayOffset` days
 * later.
 */
function parseWhen(text: string, dayOffset: number): number {
  const date = parseDate(text);
  if (date) return Date.UTC(date.year, date.month - 1, date.day + dayOffset) / 1000;
  const at = parseTime(text);
  if (at !== undefined) return at;
  throw new InvalidArgumentError("Give a date such as 2026-11-20 or a time such as 2026-11-20T18:00.");
}
