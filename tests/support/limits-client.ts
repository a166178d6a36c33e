// A process of its own with many clients that ask the shared limits without a pause; its arguments and its answer are JSON.
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import type { LimitSet } from "../../src/domain/limits/limits.ts";
import { SharedLimits } from "../../src/limits/shared/shared-limits.ts";

export interface LimitsClientOrder {
  url: string;
  set: LimitSet;
  clients: number;
  /** Unix milliseconds. */
  from: number;
  until: number;
  /** How far the wall clock of this process is off. */
  wallOffSeconds: number;
}

export interface LimitsClientResult {
  admitted: number;
  refused: number;
  degraded: boolean;
}

const order = JSON.parse(process.argv[2] ?? "") as LimitsClientOrder;
const limits = await SharedLimits.open({
  url: order.url,
  clock: { ...systemClock, nowSeconds: () => systemClock.nowSeconds() + order.wallOffSeconds },
  ledger: { readTotals: async (_, use) => use({ requests: 0, tokens: 0, nanoUsd: 0, firstAt: undefined }) },
  directory: mkdtempSync(join(tmpdir(), "headrace-limits-")),
  log: { info() {}, warn() {}, error() {} },
  // A busy machine is not what is tested.
  deadlineMs: 10_000,
});
const result: LimitsClientResult = { admitted: 0, refused: 0, degraded: false };
await Bun.sleep(order.from - Date.now());
await Promise.all(
  Array.from({ length: order.clients }, async () => {
    while (Date.now() < order.until) {
      const admission = await limits.admit(order.set, { tokens: 0, nanoUsd: 0, minTokens: 0, minNanoUsd: 0 });
      if ("lease" in admission) {
        result.admitted++;
        admission.lease.settle(0, 0);
      } else result.refused++;
    }
  }),
);
result.degraded = limits.state().status !== "ok";
await limits.close();
process.stdout.write(JSON.stringify(result));
