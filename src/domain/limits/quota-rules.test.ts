// Quotas per window: calendar windows, faults in a list of rules, and which of two rules is the wider one.
import { describe, expect, test } from "bun:test";
import {
  calendarPeriod,
  isWithinRule,
  maxAmount,
  type QuotaRule,
  quotaFault,
  quotaRuleOf,
  windowOf,
} from "./quota-rules.ts";

const at = (text: string) => Date.parse(text) / 1000;
const rule = (more: Partial<QuotaRule> = {}): QuotaRule => ({
  ...{ unit: "tokens", amount: 100, per: "day", window: "calendar" },
  ...more,
});

describe("calendar windows", () => {
  for (const [per, start, end] of [
    ["hour", "2026-12-31T23:00:00Z", "2027-01-01T00:00:00Z"],
    ["day", "2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z"],
    ["week", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z"],
    ["month", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"],
  ] as const) {
    test(`bounds a calendar ${per} by UTC, weeks from Monday, from its first second to before the next one`, () => {
      const window = windowOf({ per, window: "calendar" });
      const period = { start: at(start), end: at(end) };
      expect(calendarPeriod(window, at("2026-12-31T23:59:59Z"))).toEqual(period);
      expect(calendarPeriod(window, period.start)).toEqual(period);
      expect(calendarPeriod(window, period.start - 1).end).toBe(period.start);
      expect(calendarPeriod(window, period.end).start).toBe(period.end);
    });
  }
});

describe("rules of quotas", () => {
  test("defaults to a calendar window, or a rolling one for periods that the calendar lacks", () => {
    expect(quotaRuleOf({ unit: "usd", amount: 1, per: "week" }).window).toBe("calendar");
    expect(quotaRuleOf({ unit: "usd", amount: 1, per: "5h" }).window).toBe("rolling");
    expect(quotaRuleOf({ unit: "usd", amount: 1, per: 90 }).window).toBe("rolling");
    expect(quotaRuleOf({ unit: "usd", amount: 1, per: 90, models: ["b", "a", "b"] }).models).toEqual(["a", "b"]);
  });

  test("reports an invalid window, a fractional amount and duplicate quotas by position and field", () => {
    expect(quotaFault([rule(), rule({ per: "5h" })])).toMatchObject({ at: 1, field: "window" });
    expect(quotaFault([rule({ amount: 0.5 })])).toMatchObject({ at: 0, field: "amount" });
    expect(quotaFault([rule({ unit: "usd", amount: 9_000_001 })])).toMatchObject({ at: 0, field: "amount" });
    expect(quotaFault([rule(), rule({ amount: 5 })])).toMatchObject({ at: 1, field: "per" });
    expect(quotaFault([{ ...rule({ unit: "requests" }), hard_stop: true }])).toMatchObject({
      at: 0,
      field: "hard_stop",
    });
    expect(quotaFault([rule(), rule({ models: ["m"] }), rule({ unit: "usd", amount: 0.5 })])).toBeUndefined();
  });

  test("bounds the length of the models of all quotas together", () => {
    const models = Array.from({ length: 32 }, (_, i) => `${i}`.padEnd(250, "m"));
    const two = [rule({ models }), rule({ models, per: "week" })];
    expect(quotaFault(two)).toBeUndefined();
    expect(quotaFault([...two, rule({ models, per: "month" })])).toMatchObject({ at: 2, field: "models" });
  });

  test("compares rules of the same unit and window by amount and models", () => {
    expect(isWithinRule(rule(), rule())).toBe(true);
    expect(isWithinRule(rule({ amount: 101 }), rule())).toBe(false);
    expect(isWithinRule(rule({ unit: "requests" }), rule())).toBe(false);
    expect(isWithinRule(rule({ window: "rolling" }), rule())).toBe(false);
    expect(isWithinRule(rule(), rule({ models: ["a"] }))).toBe(true);
    expect(isWithinRule(rule({ models: ["a"] }), rule())).toBe(false);
    expect(isWithinRule(rule({ models: ["a*"] }), rule({ models: ["ab", "ac*"] }))).toBe(true);
    expect(isWithinRule(rule({ models: ["ab*"] }), rule({ models: ["a*"] }))).toBe(false);
    expect(isWithinRule(rule(), rule({ tag: "a" }))).toBe(true);
    expect(isWithinRule(rule({ tag: "a" }), rule())).toBe(false);
    expect(isWithinRule(rule({ tag: "a" }), rule({ tag: "b" }))).toBe(false);
    expect(isWithinRule(rule(), rule({ hardStop: true }))).toBe(false);
    expect(isWithinRule(rule({ hardStop: true }), rule())).toBe(true);
  });
});

test("takes the largest amount of each unit, and nothing above it", () => {
  for (const unit of ["requests", "tokens", "usd"] as const) {
    const most = maxAmount[unit];
    expect(quotaFault([rule({ unit, amount: most })])).toBeUndefined();
    expect(quotaFault([rule({ unit, amount: most + 1 })])).toMatchObject({ at: 0, field: "amount" });
  }
});
