// Tests that sampling leaves out only log lines of successful requests, and a sampled line states the rate.
import { describe, expect, test } from "bun:test";
import type { LogFields } from "../../base/log.ts";
import { everyRequest, levelOfLine } from "./request-line.ts";

const sampled = { sample: 0.1, slowMs: 1_000 };

describe("a sample of one in ten", () => {
  const level = (given: LogFields, durationMs = 5, draw = 0.5) => {
    const fields = { ...given };
    return [levelOfLine(fields, durationMs, sampled, () => draw), fields] as const;
  };

  test("logs a tenth of the successful requests and marks their lines as sampled", () => {
    expect(level({ status: 200 })).toEqual([undefined, { status: 200 }]);
    expect(level({ status: 200, outcome: "completed" })[0]).toBeUndefined();
    expect(level({ status: 303 }, 5, 0.1)[0]).toBeUndefined();
    expect(level({ status: 200 }, 5, 0.0999)).toEqual(["info", { status: 200, sampled: 0.1 }]);
  });

  test.each([
    ["a refusal", { status: 429, code: "rate_limit_exceeded" }],
    ["a status of a fault without a code", { status: 404 }],
    ["a stream that its client left", { status: 200, outcome: "cancelled" }],
    ["a client that left before the answer", { status: 499 }],
  ])("logs %s at full rate despite sampling", (_name, fields) => {
    expect(level(fields)).toEqual(["info", fields]);
  });

  test.each([
    ["a stream that failed in its middle", { status: 200, outcome: "failed", code: "upstream_error" }],
    ["an answer that no model server gave", { status: 502, code: "upstream_error" }],
    ["a fault of a store", { status: 503, code: "service_unavailable" }],
  ])("logs %s as a warning despite sampling", (_name, fields) => {
    expect(level(fields)).toEqual(["warn", fields]);
  });

  test("logs a slow request as a warning despite sampling", () => {
    expect(level({ status: 200 }, 1_000)).toEqual(["warn", { status: 200, slow: true }]);
    expect(level({ status: 200 }, 999)[0]).toBeUndefined();
  });

  test("logs an internal fault as an error despite sampling, however long the request took", () => {
    expect(level({ status: 500, code: "internal_error" }, 5_000)[0]).toBe("error");
  });
});

test("logs every request without sampling settings, and draws no random numbers", () => {
  const draw = () => {
    throw new Error("drawn");
  };
  expect(levelOfLine({ status: 200 }, 1e9, everyRequest, draw)).toBe("info");
});
