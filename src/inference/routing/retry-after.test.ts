// Tests that any form of a model server's retry time becomes seconds that clients obey.
import { expect, test } from "bun:test";
import { retryAfterOf } from "./retry-after.ts";

const date = "Mon, 23 Nov 2026 02:00:00 GMT";
test.each([
  [{}, 5],
  [{ "retry-after": "7" }, 7],
  [{ "retry-after": "0.2" }, 1],
  [{ "retry-after": "3600" }, 60],
  [{ "retry-after": "9".repeat(400) }, 60],
  [{ "retry-after": "0" }, 5],
  [{ "retry-after": "-3" }, 5],
  [{ "retry-after": "soon" }, 5],
  [{ "retry-after": "1e3" }, 5],
  [{ "retry-after": "2", "retry-after-ms": "8100" }, 9],
  [{ "retry-after": "7", "retry-after-ms": "soon" }, 7],
  [{ "retry-after": "Mon, 23 Nov 2026 02:00:20 GMT", date }, 20],
  [{ "retry-after": "Mon, 23 Nov 2026 03:00:00 GMT", date }, 60],
  [{ "retry-after": "Mon, 23 Nov 2026 01:00:00 GMT", date }, 5],
  [{ "retry-after": "Mon, 23 Nov 2026 02:00:20 GMT" }, 5],
] as [Record<string, string>, number][])("%j is %d s", (fields, seconds) => {
  expect(retryAfterOf(new Headers(fields))).toBe(seconds);
});
