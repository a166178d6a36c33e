// Error rates that begin an incident, and rates that do not.
import { beforeEach, expect, test } from "bun:test";
import { type ManualClock, manualClock } from "../../../tests/support/manual-clock.ts";
import type { Environment } from "../../domain/api-key.ts";
import type { Observer } from "../../domain/usage/observer.ts";
import type { UsageBegin, UsageEnd, UsageOutcome } from "../../domain/usage/usage.ts";
import { ErrorWatch } from "./error-watch.ts";

let clock: ManualClock;
let watch: ErrorWatch;
let passedOn: number;

beforeEach(() => {
  clock = manualClock();
  passedOn = 0;
  const next: Observer = {
    ...{ httpEnded() {}, inferenceBegan() {}, inferenceRefused() {}, attempted() {} },
    inferenceEnded: () => passedOn++,
  };
  watch = new ErrorWatch(next, clock);
});

function end(
  count: number,
  outcome: UsageOutcome,
  code: string | null = null,
  accountId = "acct_1",
  of: Environment = "live",
) {
  const begin: UsageBegin = {
    ...{ requestId: "req_1", at: 0, accountId, keyId: "key_1", appId: null, environment: of },
    ...{ operation: "chat", model: "m", stream: false },
  };
  const course = { attempts: 1, fallbackModel: undefined, isUnderReported: false, refusal: undefined };
  const ended: Partial<UsageEnd> = { outcome, errorCode: code };
  for (let i = 0; i < count; i++) watch.inferenceEnded(begin, ended as UsageEnd, course);
}

const out = () => watch.states().map(({ subject }) => subject);

test("begins an incident when a tenth of at least twenty requests fail, per account and environment and in total", () => {
  end(17, "completed");
  end(2, "failed", "upstream_error");
  expect(out()).toEqual([]);
  end(1, "completed");
  expect(out()).toEqual(["errors:all:all", "errors:acct_1:live"]);
  expect(passedOn).toBe(20);
});

test("does not count errors caused by clients, limits and disconnects", () => {
  for (const code of ["invalid_request", "rate_limit_exceeded", "insufficient_quota", "model_not_found"]) {
    end(20, "failed", code);
  }
  end(20, "cancelled");
  end(20, "interrupted");
  expect(out()).toEqual([]);
});

test("counts accounts and environments separately", () => {
  end(100, "completed");
  end(20, "failed", "upstream_timeout", "acct_2", "test");
  end(60, "completed", null, "acct_2", "live");
  expect(out()).toEqual(["errors:all:all", "errors:acct_2:test"]);
});

test("ends an incident after a window with less than one failure in twenty, and can begin a new one", () => {
  end(20, "failed", "service_unavailable");
  expect(out()).toHaveLength(2);
  clock.advance(300_000);
  expect(out()).toHaveLength(2);
  end(94, "completed");
  end(6, "failed", null);
  clock.advance(300_000);
  expect(out()).toHaveLength(2);
  end(100, "completed");
  clock.advance(300_000);
  expect(out()).toEqual([]);
  end(20, "failed", "internal_error");
  expect(out()).toHaveLength(2);
});
