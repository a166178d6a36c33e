// Tests the owners and hours of the refusals in an answer.
import { expect, test } from "bun:test";
import { exchangeFor, incoming, responseOf } from "../../../../tests/support/exchange.ts";
import { manualClock } from "../../../../tests/support/manual-clock.ts";
import { accountFor, principalFor } from "../../../../tests/support/principal.ts";
import type { RefusalCount, RefusalQuery } from "../../../domain/limits/refusal.ts";
import type { Principal } from "../../../domain/principal.ts";
import { refusalRoutes } from "./refusal-routes.ts";

const now = Date.UTC(2026, 8, 8, 12, 30) / 1000;
const hour = 3_600;

async function ask(principal: Principal, target = "/v1/refusals", rows: RefusalCount[] = []) {
  const steps: (string | RefusalQuery | number)[] = [];
  const [route] = refusalRoutes({
    refusalStore: {
      async list(query, limit) {
        steps.push(query, limit);
        return rows;
      },
    },
    refusalCounts: {
      async flush() {
        steps.push("flush");
      },
    },
    clock: manualClock(now),
    requestLimits: () => ({ bodyBytes: 10_000, depth: 8 }),
  });
  if (!route) throw new Error("There is no route.");
  const response = await responseOf(() => route.handle(exchangeFor(incoming({ target })), principal));
  return { steps, body: await response.json() };
}

test("lists the principal's refusals of the last seven days by default, pending ones included", async () => {
  const { steps } = await ask(principalFor({ account: accountFor({ id: "acct_7" }), environment: "test" }));
  const [start, end] = [now - 1_800 - 7 * 24 * hour, now + 1_800];
  expect(steps).toEqual(["flush", { accountId: "acct_7", environment: "test", start, end }, 1_000]);
});

test("lists only an app's own refusals for an app", async () => {
  const { steps } = await ask(principalFor({ appId: "app_1" }));
  expect(steps[1]).toMatchObject({ accountId: "acct_1", appId: "app_1" });
});

test("widens a range of refusals to whole hours", async () => {
  const { steps } = await ask(principalFor(), `/v1/refusals?start=${now}&end=${now + 1}`);
  expect(steps[1]).toMatchObject({ start: now - 1_800, end: now + 1_800 });
});

test("lists refusals beyond the separate counts without key and model", async () => {
  const start = now - 1_800;
  const known = { accountId: "acct_1", environment: "live", start, appId: null, requests: 9, lastAt: now } as const;
  const { body } = await ask(principalFor(), undefined, [{ ...known, keyId: null, model: null, reason: "capacity" }]);
  const reported = { key: null, app: null, model: null, reason: "capacity", requests: 9, last_at: now };
  expect(body).toEqual({ object: "list", data: [{ object: "refusal", start, ...reported }] });
});
