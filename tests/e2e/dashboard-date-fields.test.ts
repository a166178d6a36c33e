// The dashboard's date fields show times as the reader's clock does.
import { afterEach, expect, test } from "bun:test";
import { localText } from "../../web/parts/filters/local-time.ts";

const { TZ } = process.env;

afterEach(() => {
  if (TZ === undefined) delete process.env["TZ"];
  else process.env["TZ"] = TZ;
});

test.each([
  ["Europe/Berlin", "2026-10-24T23:30:00Z", "2026-10-25T01:30"],
  ["Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T02:30"],
  ["Europe/Berlin", "2026-10-25T01:30:00Z", "2026-10-25T02:30"],
  ["Europe/Berlin", "2026-10-25T02:30:00Z", "2026-10-25T03:30"],
  ["Europe/Berlin", "2027-03-28T00:30:00Z", "2027-03-28T01:30"],
  ["Europe/Berlin", "2027-03-28T01:30:00Z", "2027-03-28T03:30"],
  ["America/New_York", "2026-11-01T05:30:00Z", "2026-11-01T01:30"],
  ["America/New_York", "2026-11-01T06:30:00Z", "2026-11-01T01:30"],
  ["Asia/Kathmandu", "2026-11-29T12:00:00Z", "2026-11-29T17:45"],
])("shows a date field in %s for the moment %s as %s, also around a clock change", (zone, moment, shown) => {
  process.env["TZ"] = zone;
  expect(localText(Date.parse(moment) / 1000)).toBe(shown);
});
