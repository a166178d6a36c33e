// A sample leaves out only what went well, and says what it stands for.
import { describe, expect, test } from "bun:test";
import type { LogFields } from "../../base/log.ts";
import { everyRequest, levelOfLine } from "./request-line.ts";

const sampled = { sample: 0.1, slowMs: 1_000 };

describe("a sample of one in ten", () => {
  const level = (given: LogFields, durationMs = 5, draw = 0.5) => {
    const fields = { ...given };
    return [levelOfLine(fields, durationMs, sampled, () => draw), fields] as const;
  };

  test("a sample of one in ten leaves out what went well, but for a tenth that says so", () => {
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
  ])("a sample of one in ten keeps %s, and as one line that stands for itself", (_name, fields) => {
    expect(level(fields)).toEqual(["info", fields]);
  });

  test.each([
    ["a stream that failed in its middle", { status: 200, outcome: "failed", code: "upstream_error" }],
    ["an answer that no model server gave", { status: 502, code: "upstream_error" }],
    ["a fault of a store", { status: 503, code: "service_unavailable" }],
  ])("keeps %s as a warning in a sample of one in ten", (_name, fields) => {
    expect(level(fields)).toEqual(["warn", fields]);
  });

  test("a sample of one in ten keeps what is slow as a warning", () => {
    expect(level({ status: 200 }, 1_000)).toEqual(["warn", { status: 200, slow: true }]);
    expect(level({ status: 200 }, 999)[0]).toBeUndefined();
  });

  test("a sample of one in ten keeps a fault of ours as an error, however long it took", () => {
    expect(level({ status: 500, code: "internal_error" }, 5_000)[0]).toBe("error");
  });
});

test("without settings every request has its line, and draws no lots", () => {
  const draw = () => {
    throw new Error("drawn");
  };
  expect(levelOfLine({ status: 200 }, 1e9, everyRequest, draw)).toBe("info");
});
