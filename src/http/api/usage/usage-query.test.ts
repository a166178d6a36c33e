// What may be asked of the usage report: times, groups, ranges, cursors.
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
  test("the range is the last 30 days by day where nobody says, today and its hour included", () => {
    expect(ask("")).toEqual({
      accountId: "acct_1",
      environment: "live",
      start: at("2026-08-16T00:00:00Z"),
      end: at("2026-09-16T00:00:00Z"),
      bucket: "day",
      groupBy: [],
    });
  });

  test("the range reads Unix seconds, dates, and times with or without a zone, which is UTC", () => {
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

  test("the range refuses what is no time, and names the parameter", () => {
    const bad = ["", "yesterday", "2026-02-30", "2026-13-01", "-1", "1e9", "2026-09-01T25:00", "9999999999999"];
    for (const text of bad) {
      expect(() => ask(`start=${text}`)).toThrow(/^start: must be Unix seconds or an ISO 8601 date/);
      expect(() => ask(`end=${text}`)).toThrow(/^end: must be Unix seconds or an ISO 8601 date/);
    }
  });

  test("reads times up to the last second that has a year of four digits", () => {
    expect(ask("start=9999-12-31&end=9999-12-31T23:59:59Z").end).toBe(253_402_300_800);
    for (const text of ["253402300800", "9999-12-31T23:59:59-00:01"]) {
      expect(() => ask(`start=${text}`)).toThrow(/^start: must be Unix seconds or an ISO 8601 date/);
    }
  });

  test("the range is widened to whole buckets, and not where it is whole", () => {
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

  test("the range must begin before it ends, which is now by default", () => {
    expect(() => ask("start=2026-09-02&end=2026-09-01")).toThrow(
      "start: must be before end (got 2026-09-02T00:00:00Z and 2026-09-01T00:00:00Z).",
    );
    expect(() => ask("start=2026-09-02&end=2026-09-02")).toThrow(/^start: must be before end/);
    expect(() => ask("start=2027-01-01")).toThrow(/^start: must be before end, which is now by default/);
  });

  test("the range has a bound for each bucket that the message names", () => {
    expect(ask("bucket=hour&start=2025-09-01&end=2026-09-01").bucket).toBe("hour");
    expect(() => ask("bucket=hour&start=2025-01-01&end=2026-09-01")).toThrow(
      /^start: must be at most 366 days before end where bucket is hour/,
    );
    expect(ask("start=2017-01-01&end=2026-09-01").start).toBe(at("2017-01-01"));
    expect(() => ask("bucket=month&start=0")).toThrow(/at most 3660 days/);
  });
});

test("groups are those that exist, each once, in the order asked for", () => {
  expect(ask("group_by=key,model").groupBy).toEqual(["key", "model"]);
  expect(ask("group_by=app, environment").groupBy).toEqual(["app", "environment"]);
  for (const bad of ["", "models", "model,model", "model,", "constructor"]) {
    expect(() => ask(`group_by=${bad}`)).toThrow(/^group_by: must be one or several of model, key, environment, app/);
  }
});

test("the account, the environment and the app are the principal's, whatever is asked", () => {
  const query = ask("group_by=environment", { environment: "test", appId: "app_1" });
  expect(query).toMatchObject({ accountId: "acct_1", environment: "test", appId: "app_1" });
  expect(() => ask("environment=live")).toThrow(/^environment: is no parameter/);
});

describe("a cursor", () => {
  const query = ask("group_by=model,app");
  const start = at("2026-09-01");
  const cursor = (...parts: unknown[]) => Buffer.from(JSON.stringify(parts)).toString("base64url");

  test("a cursor comes back as the row that it was made of", () => {
    for (const app of ["app_1", null]) {
      const position = { start, groups: { model: 'wéird"/model', app } };
      const text = encodeCursor(query, position);
      expect(text).toMatch(/^[\w-]+$/);
      expect(decodeCursor(query, text)).toEqual(position);
    }
  });

  test("a cursor that is damaged, forged or of another report is refused, naming it", () => {
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

describe("a part of it", () => {
  test("a report is of one model, key and app, together, where they are named", () => {
    expect(ask("model=m&key=key_2&app=app_3")).toMatchObject({
      accountId: "acct_1",
      model: "m",
      keyId: "key_2",
      appId: "app_3",
    });
    for (const name of ["model", "key", "app"]) expect(() => ask(`${name}=`)).toThrow(new RegExp(`^${name}: must be`));
  });

  test("a report is never another app's for an app, and its own without saying so", () => {
    const ofApp = { appId: "app_3" };
    expect(ask("app=app_3", ofApp)).toMatchObject({ appId: "app_3" });
    expect(ask("key=key_2", ofApp)).toMatchObject({ appId: "app_3", keyId: "key_2" });
    expect(() => ask("app=app_4", ofApp)).toThrow("app: an app sees its own usage alone; leave it out.");
  });

  test("what a report is of already cannot be exchanged for another", () => {
    const asked = readQuery(accountUsageParameters, "http://localhost/v1/usage?key=key_2&app=app_2");
    expect(usageQuery(asked, principalFor({}), now, { keyId: "key_1" })).toMatchObject({ keyId: "key_1" });
    const published = { ...asked, key: undefined };
    expect(usageQuery(published, principalFor({}), now, { publishedAppId: "app_1" })).toMatchObject({
      accountId: null,
      appId: "app_1",
    });
  });
});
