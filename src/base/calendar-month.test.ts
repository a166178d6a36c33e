// Calendar months in UTC: their borders, the turn of the year, leap years.
import { expect, test } from "bun:test";
import { calendarMonthOf } from "./calendar-month.ts";

const at = (text: string) => Date.parse(text) / 1000;

test("contains the first second of a month and not its end", () => {
  const november = { start: at("2026-11-01T00:00:00Z"), end: at("2026-12-01T00:00:00Z") };
  expect(calendarMonthOf(november.start)).toEqual(november);
  expect(calendarMonthOf(november.end - 1)).toEqual(november);
  expect(calendarMonthOf(november.end).start).toBe(november.end);
  expect(calendarMonthOf(november.start - 1).end).toBe(november.start);
});

test("ends December with the year, and February by its length", () => {
  expect(calendarMonthOf(at("2026-12-31T23:59:59Z")).end).toBe(at("2027-01-01T00:00:00Z"));
  expect(calendarMonthOf(at("2028-02-15T12:00:00Z")).end).toBe(at("2028-03-01T00:00:00Z"));
  expect(calendarMonthOf(at("2028-02-29T12:00:00Z")).start).toBe(at("2028-02-01T00:00:00Z"));
});
