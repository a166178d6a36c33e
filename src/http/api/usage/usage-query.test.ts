// Tests the query parameters of the usage report: times, groups, ranges, cursors.
import { describe, expect, test } from "bun:test";
import { principalFor } from "../../../../tests/support/principal.ts";
import { GatewayError } from "../../../base/errors.ts";
import type { UsageQuery } from "../../../domain/usage/usage.ts";
import { readQuery } from "../../content/query.ts";
import { accountUsageParameters, decodeCursor, encodeCursor, usageQuery } from "./usage-query.ts";

const now = Date.UTC(2026, 8, 15, 10, 30) / 1000;
const at = (iso: string) => Date.parse(iso) / 1000;

function ask(search: string, changes: Parameters<typeof principalFor>[0] = {}): UsageQuery {
  return usageQuery(
    readQuery(accountUsageParameters, `http://localhost/v1/usage?${search}`),
    principalFor(changes),
    now,
  );
}

describe("the range", () => {
  test("defaults to the last 30 days by day, including the current hour", () => {
    expect(ask("")).toEqual({
      accountId: "acct_1",
      environment: "live",
      start: at("2026-08-16T00:00:00Z"),
      end: at("2026-09-16T00:00:00Z"),
      bucket: "day",
      groupBy: [],
    });
  });

  test("reads Unix seconds, dates, and times with or without a zone, in UTC by default", () => {
    const times: [string, string][] = [
      ["1788220800", "2026-09-01T00:00:00Z"],
      ["2026-09-01", "2026-09-01T00:00:00Z"],
      ["2026-09-01T07:00:00Z", "2026-09-01T07:00:00Z"],
      ["2026-09-01T07:00", "2026-09-01T07:00:00Z"],
      ["2026-09-01T07:59:59.999", "2026-09-01T07:00:00Z"],
      ["2026-09-01T07:00:00%2B02:00", "2026-09-01T05:00:00Z"],
      ["2026-09-01T07:00:00+02:00", "2026-09-01T05:00:00Z"],
      ["2026-09-01T07:00:00-02:00", "2026-09-01T09:00:00Z"],
    ];
    for (const [text, start] of times) expect(ask(`bucket=hour&start=${text}`).start).toBe(at(start));
  });

  test("refuses an invalid time and names the parameter", () => {
    const bad = ["", "yesterday", "2026-02-30", "2026-13-01", "-1", "1e9", "2026-09-01T25:00", "9999999999999"];
    for (const text of bad) {
      expect(() => ask(`start=${text}`)).toThrow(/^start: must be Unix seconds or an ISO 8601 date/);
      expect(() => ask(`end=${text}`)).toThrow(/^end: must be Unix seconds or an ISO 8601 date/);
    }
  });

  test("reads times up to the last second of the year 9999", () => {
    expect(ask("start=9999-12-31&end=9999-12-31T23:59:59Z").end).toBe(253_402_300_800);
    for (const text of ["253402300800", "9999-12-31T23:59:59-00:01"]) {
      expect(() => ask(`start=${text}`)).toThrow(/^start: must be Unix seconds or an ISO 8601 date/);
    }
  });

  test("widens a range to whole buckets", () => {
    const range = (search: string) => {
      const { start, end } = ask(search);
      return [start, end];
    };
    const times = "start=2026-02-03T04:05:06Z&end=2026-03-04T05:06:07Z";
    expect(range(`bucket=hour&${times}`)).toEqual([at("2026-02-03T04:00:00Z"), at("2026-03-04T06:00:00Z")]);
    expect(range(`bucket=day&${times}`)).toEqual([at("2026-02-03T00:00:00Z"), at("2026-03-05T00:00:00Z")]);
    expect(range(`bucket=month&${times}`)).toEqual([at("2026-02-01T00:00:00Z"), at("2026-04-01T00:00:00Z")]);
    expect(range("bucket=month&start=2026-02-01&end=2026-03-01")).toEqual([at("2026-02-01"), at("2026-03-01")]);
  });

  test("refuses a range that does not begin before its end, by default now", () => {
    expect(() => ask("start=2026-09-02&end=2026-09-01")).toThrow(
      "start: must be before end (got 2026-09-02T00:00:00Z and 2026-09-01T00:00:00Z).",
    );
    expect(() => ask("start=2026-09-02&end=2026-09-02")).toThrow(/^start: must be before end/);
    expect(() => ask("start=2027-01-01")).toThrow(/^start: must be before end, which is now by default/);
  });

  test("bounds the range for each bucket size, and names the bound", () => {
    expect(ask("bucket=hour&start=2025-09-01&end=2026-09-01").bucket).toBe("hour");
    expect(() => ask("bucket=hour&start=2025-01-01&end=2026-09-01")).toThrow(
      /^start: must be at most 366 days before end where bucket is hour/,
    );
    expect(ask("start=2017-01-01&end=2026-09-01").start).toBe(at("2017-01-01"));
    expect(() => ask("bucket=month&start=0")).toThrow(/at most 3660 days/);
  });
});

test("accepts existing groups once each, in the requested order", () => {
  expect(ask("group_by=key,model").groupBy).toEqual(["key", "model"]);
  expect(ask("group_by=app, environment").groupBy).toEqual(["app", "environment"]);
  for (const bad of ["", "models", "model,model", "model,", "constructor"]) {
    expect(() => ask(`group_by=${bad}`)).toThrow(/^group_by: must be one or several of model, key, environment, app/);
  }
});

test("always reports on the principal's own account, environment and app", () => {
  const query = ask("group_by=environment", { environment: "test", appId: "app_1" });
  expect(query).toMatchObject({ accountId: "acct_1", environment: "test", appId: "app_1" });
  expect(() => ask("environment=live")).toThrow(/^environment: is no parameter/);
});

describe("a cursor", () => {
  const query = ask("group_by=model,app");
  const start = at("2026-09-01");
  const cursor = (...parts: unknown[]) => Buffer.from(JSON.stringify(parts)).toString("base64url");

  test("reads a cursor back as the row that it came from", () => {
    for (const app of ["app_1", null]) {
      const position = { start, groups: { model: 'wéird"/model', app } };
      const text = encodeCursor(query, position);
      expect(text).toMatch(/^[\w-]+$/);
      expect(decodeCursor(query, text)).toEqual(position);
    }
  });

  test("refuses a damaged, forged or foreign cursor by name", () => {
    const bad = [
      "",
      "!",
      "bnVsbA",
      cursor(),
      cursor("day model app"),
      cursor("day model app", start, "m"),
      cursor("day model app", start, "m", null, null),
      cursor("day model app", start + 1, "m", null),
      cursor("day model app", -86_400, "m", null),
      cursor("day model app", `${start}`, "m", null),
      cursor("day model app", 1e300, "m", null),
      cursor("day model app", start, null, null),
      cursor("day model app", start, { toString: 1 }, null),
      encodeCursor(ask("group_by=app,model"), { start, groups: { model: "m", app: "a" } }),
      encodeCursor(ask("group_by=model,app&bucket=hour"), { start, groups: { model: "m", app: "a" } }),
      encodeCursor(query, { start, groups: { model: "m", app: null } }).slice(0, -4),
    ];
    for (const text of bad) {
      let thrown: unknown;
      try {
        decodeCursor(query, text);
      } catch (error) {
        thrown = error;
      }
      expect(thrown).toBeInstanceOf(GatewayError);
      expect(thrown).toMatchObject({ code: "invalid_request", message: expect.stringMatching(/^cursor: must be/) });
    }
  });
});

describe("a filtered report", () => {
  test("filters a report by model, key and app together", () => {
    expect(ask("model=m&key=key_2&app=app_3")).toMatchObject({
      accountId: "acct_1",
      model: "m",
      keyId: "key_2",
      appId: "app_3",
    });
    for (const name of ["model", "key", "app"]) expect(() => ask(`${name}=`)).toThrow(new RegExp(`^${name}: must be`));
  });

  test("limits an app's report to the app, and refuses another app", () => {
    const ofApp = { appId: "app_3" };
    expect(ask("app=app_3", ofApp)).toMatchObject({ appId: "app_3" });
    expect(ask("key=key_2", ofApp)).toMatchObject({ appId: "app_3", keyId: "key_2" });
    expect(() => ask("app=app_4", ofApp)).toThrow("app: an app sees its own usage alone; leave it out.");
  });

  test("does not let a query replace the key or app that its path sets", () => {
    const asked = readQuery(accountUsageParameters, "http://localhost/v1/usage?key=key_2&app=app_2");
    expect(usageQuery(asked, principalFor({}), now, { keyId: "key_1" })).toMatchObject({ keyId: "key_1" });
    const published = { ...asked, key: undefined };
    expect(usageQuery(published, principalFor({}), now, { publishedAppId: "app_1" })).toMatchObject({
      accountId: null,
      appId: "app_1",
    });
  });
});
