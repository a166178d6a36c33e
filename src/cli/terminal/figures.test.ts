// Tests how numbers, money, times and spans are formatted and parsed.
import { describe, expect, test } from "bun:test";
import {
  formatCount,
  formatRate,
  formatRelative,
  formatSpan,
  formatTime,
  formatTimeAndRelative,
  formatUsd,
  formatUsdColumn,
  parseDate,
  parseSpan,
  parseTime,
  usdDigits,
} from "./figures.ts";

const now = Date.UTC(2026, 10, 20, 18, 30) / 1000;

test.each([
  [0, "0"],
  [999, "999"],
  [1000, "1,000"],
  [1234567, "1,234,567"],
  [null, "-"],
  [undefined, "-"],
])("formats the number %p as %p", (value, text) => {
  expect(formatCount(value)).toBe(text);
});

test.each([
  [0, "$0.00"],
  [12.3456, "$12.35"],
  [1234.5, "$1,234.50"],
  [0.00123, "$0.0012"],
  [0.000000001, "$0.000000001"],
  [null, "-"],
])("formats %p USD as %p", (value, text) => {
  expect(formatUsd(value)).toBe(text);
});

test("formats the amounts of a column with the digits of the smallest", () => {
  expect(usdDigits([12, 0.0042, 0, null])).toBe(4);
});

test("formats a time in the local zone, to the minute", () => {
  expect(formatTime(now)).toBe("2026-11-20 18:30");
  expect(formatTime(null)).toBe("-");
});

test.each([
  [now, "now"],
  [now - 45, "45 s ago"],
  [now - 180, "3 min ago"],
  [now + 23 * 3600, "in 23 h"],
  [now + 29 * 86_400, "in 29 days"],
  [now + 29 * 86_400 - 1, "in 29 days"],
  [now + 599, "in 10 min"],
  [now + 594, "in 9 min"],
  [now + 59, "in 1 min"],
  [now + 54, "in 54 s"],
  [now - 599, "9 min ago"],
  [now - 90 * 86_400, "2026-08-22 18:30"],
])("formats %p relative to now as %p", (seconds, text) => {
  expect(formatRelative(seconds, now)).toBe(text);
});

test("omits the relative form of a distant time", () => {
  expect(formatTimeAndRelative(now - 3 * 3600, now)).toBe("2026-11-20 15:30 (3 h ago)");
  expect(formatTimeAndRelative(now - 90 * 86_400, now)).toBe("2026-08-22 18:30");
});

test("formats a duration in its largest whole unit", () => {
  expect([59, 60, 3599, 3600, 47 * 3600, 48 * 3600].map(formatSpan)).toEqual([
    "59 s",
    "1 min",
    "59 min",
    "1 h",
    "47 h",
    "2 days",
  ]);
});

describe("parsing of user input", () => {
  test.each([
    ["90s", 90],
    ["30m", 1800],
    ["12h", 43_200],
    ["30d", 2_592_000],
    ["2w", 1_209_600],
    ["0", 0],
    ["12", undefined],
    ["-1h", undefined],
    ["1.5h", undefined],
    ["1y", undefined],
    ["1toString", undefined],
  ])("parses the duration %p as %p seconds", (text, seconds) => {
    expect(parseSpan(text)).toBe(seconds);
  });

  test("rejects a date that does not exist", () => {
    expect(parseDate("2026-12-31")).toEqual({ year: 2026, month: 12, day: 31 });
    expect(parseDate("2026-02-30")).toBeUndefined();
    expect(parseDate("2026-13-01")).toBeUndefined();
    expect(parseDate("31.12.2026")).toBeUndefined();
  });

  test("accepts a zone in a time", () => {
    expect(parseTime("2026-11-20T18:30Z")).toBe(now);
    expect(parseTime("2026-11-20 19:30:00+01:00")).toBe(now);
    expect(parseTime("2026-11-20T18:30")).toBe(now);
    expect(parseTime("20 Nov 2026")).toBeUndefined();
    expect(parseTime("2026-11-20T25:00")).toBeUndefined();
  });
});

test("formats a rate as configured, without binary rounding digits", () => {
  expect([2.5000000000000004, 0.1 + 0.2, 0.003625, 15, 1e-9].map(formatRate)).toEqual([
    ...["$2.5", "$0.3", "$0.003625", "$15", "$1e-9"],
  ]);
});

test("formats a column of costs with the digits of the longest, at least two, and separators", () => {
  const column = (...costs: string[]) => costs.map(formatUsdColumn(costs));
  expect(column("29.498531200", "1234567.500000000")).toEqual(["29.4985312", "1,234,567.5000000"]);
  expect(column("0.000000000", "12.500000000")).toEqual(["0.00", "12.50"]);
  expect(column("0.000000001", "3.000000000")).toEqual(["0.000000001", "3.000000000"]);
});
