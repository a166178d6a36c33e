// The list of error codes, the table of their statuses and the reference page say the same.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { errorCodes } from "../../src/base/errors.ts";
import { errorTable } from "../../src/wire/errors.ts";

const page = readFileSync(join(import.meta.dir, "..", "..", "docs", "reference", "errors.md"), "utf8");

/** Specification section 7, the decisions and what came after them: status and type of each code, written down a second time. */
const decided: Readonly<Record<string, readonly [status: number, type: string]>> = {
  invalid_request: [400, "invalid_request_error"],
  invalid_api_key: [401, "invalid_request_error"],
  token_expired: [401, "authentication_error"],
  insufficient_scope: [403, "permission_error"],
  permission_denied: [403, "permission_error"],
  content_blocked: [400, "invalid_request_error"],
  insufficient_quota: [403, "insufficient_quota"],
  model_not_found: [404, "invalid_request_error"],
  previous_response_not_found: [400, "invalid_request_error"],
  not_found: [404, "invalid_request_error"],
  method_not_allowed: [405, "invalid_request_error"],
  request_too_large: [413, "invalid_request_error"],
  unsupported_media_type: [415, "invalid_request_error"],
  rate_limit_exceeded: [429, "rate_limit_error"],
  internal_error: [500, "api_error"],
  upstream_error: [502, "api_error"],
  upstream_timeout: [504, "api_error"],
  service_unavailable: [503, "overloaded_error"],
};

test("lists the same codes in the type, the table and the decisions", () => {
  expect([...errorCodes].sort()).toEqual(Object.keys(decided).sort() as never);
  expect(Object.keys(errorTable).sort()).toEqual(Object.keys(decided).sort());
});

test.each([...errorCodes])("gives %s its decided status and type in the table and the reference", (code) => {
  const { status, type, when } = errorTable[code];
  expect([status, type]).toEqual([...(decided[code] ?? [])] as never);
  expect(page).toContain(`| ${status} | \`${code}\` | \`${type}\` | ${when} |`);
});

test("lists no other code in the reference", () => {
  const listed = [...page.matchAll(/^\| \d+ \| `(\w+)` \|/gm)].map((match) => match[1] ?? "");
  expect(listed.sort()).toEqual([...errorCodes].sort());
});

test("tells SDKs to retry only errors that a retry can mend", () => {
  expect(errorTable.insufficient_quota.shouldRetry).toBe(false);
  expect(errorTable.service_unavailable.shouldRetry).toBe(true);
});
