import { expect, test } from "bun:test";
import { usageBegin } from "../../../tests/support/usage-begin.ts";
import type { UsageEnd } from "../../domain/usage/usage.ts";
import { requestKindOf, usageKindOf } from "./usage-kinds.ts";

const end: UsageEnd = {
  ...{ promptTokens: 7, completionTokens: 2, estimated: false, outcome: "completed", errorCode: null },
  ...{ nanoUsd: 1_000, capped: false, upstream: "up", durationMs: 12, firstTokenMs: 3, queueMs: 0 },
};

test("remembers at most 64 ends for each kind of request", () => {
  const request = requestKindOf({ ...usageBegin, model: "of-many-upstreams" });
  const kept = Array.from({ length: 200 }, (_, i) => {
    usageKindOf(request, { ...end, upstream: `up-${i}` });
    return request.ended.length;
  });
  expect(Math.max(...kept)).toBe(64);
  const known = usageKindOf(request, end);
  expect(usageKindOf(request, { ...end, promptTokens: 1 })).toBe(known);
});
