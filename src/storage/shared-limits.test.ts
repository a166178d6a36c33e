// Limits that replicas share: the contract of all stores, and the same decisions as in memory whatever happens in whatever order.
import { afterAll, describe, expect, test } from "bun:test";
import { account, key, ledgerWith, limitsContract, none, quotaOf } from "../../tests/support/limits-contract.ts";
import { type ManualClock, manualClock } from "../../tests/support/manual-clock.ts";
import { startRedis } from "../../tests/support/redis.ts";
import type { Lease, LimitSet, Reservation } from "../domain/limits.ts";
import type { Ledger } from "../domain/usage.ts";
import { MemoryLimits } from "./memory-limits.ts";
import { SharedLimits } from "./shared-limits.ts";

const redis = await startRedis();
const opened: SharedLimits[] = [];
afterAll(async () => {
  await Promise.all(opened.map((limits) => limits.close()));
  await redis[Symbol.asyncDispose]();
});

const silent = { info() {}, warn() {}, error() {} };
let worlds = 0;

/** In a world of its own, by the test's clock. */
async function open(
  { clock, ledger }: { clock: ManualClock; ledger: Pick<Ledger, "readTotals"> },
  prefix = `test${++worlds}:`,
): Promise<SharedLimits> {
  const time = { micros: () => clock.monotonicMs() * 1000, seconds: () => clock.nowSeconds() };
  const limits = await SharedLimits.open({
    url: redis.url,
    clock,
    ledger,
    log: silent,
    prefix,
    time,
    deadlineMs: 5_000,
  });
  expect(limits.state().status).toBe("ok");
  opened.push(limits);
  return limits;
}

limitsContract({ open, schedules: 4 });

describe("the same decisions as in memory", () => {
  test("over random schedules of several limits, holds, extensions, debts, changed figures and quotas", async () => {
    let admitted = 0;
    for (let seed = 1; seed <= 12; seed++) {
      let state = seed * 7_919;
      const random = (below: number) => {
        state = (state * 48_271) % 2_147_483_647;
        return Math.floor((state / 2_147_483_647) * below);
      };
      const clock = manualClock(Date.UTC(2026, 10, 20) / 1000);
      const memory = new MemoryLimits({ clock, ledger: ledgerWith() });
      const shared = await open({ clock, ledger: ledgerWith() });
      const sets = [1, 2, 3].map((child): LimitSet => {
        const own = { ...key, id: `key:${child}`, limit: 5 + child, windowSeconds: 9 };
        const quota = { ...quotaOf(child === 3 ? null : 40_000, child === 1 ? null : 90_000), id: own.id };
        return {
          requests: [{ ...account, limit: 40 }, own],
          tokens: [
            { ...account, limit: 2_000 },
            { ...own, limit: 700, windowSeconds: 20 },
          ],
          quotas: [quotaOf(150_000), quota],
        };
      });
      const open_: { memory: Lease; shared: Lease; tokens: number; nanoUsd: number }[] = [];
      for (let step = 0; step < 120; step++) {
        if (random(2) === 0) clock.advance(random(2_500));
        const at = random(sets.length);
        if (random(40) === 0) {
          // An operator changes a tier.
          const limit = 500 + random(3_000);
          for (const set of sets) Object.assign(set, { tokens: [{ ...account, limit }, ...set.tokens.slice(1)] });
          for (let i = 0; i < sets.length; i++) sets[i] = { ...none, ...sets[i] };
        }
        const set = sets[at];
        if (!set) continue;
        const choice = random(10);
        if (choice < 6) {
          const minTokens = 1 + random(250);
          const ask: Reservation = {
            tokens: minTokens + (random(2) === 0 ? 0 : random(900)),
            nanoUsd: random(3_000),
            minTokens,
            minNanoUsd: 0,
          };
          const [expected, got] = await Promise.all([memory.admit(set, ask), shared.admit(set, ask)]);
          const told = (admission: typeof expected) => ({
            seed,
            step,
            status: rounded(admission.status),
            ...("refusal" in admission
              ? { message: admission.refusal.message, retry: admission.refusal.shouldRetry }
              : { reserved: admission.reservedTokens }),
          });
          expect(told(got)).toEqual(told(expected));
          if ("lease" in expected && "lease" in got) {
            admitted++;
            open_.push({ memory: expected.lease, shared: got.lease, tokens: expected.reservedTokens, nanoUsd: 0 });
          }
          continue;
        }
        const [one] = choice < 8 ? open_.splice(random(open_.length), 1) : [open_[random(open_.length)]];
        if (!one) continue;
        const tokens = random(3) === 0 ? one.tokens + random(400) : random(one.tokens + 1);
        const nanoUsd = random(4_000);
        const what = choice < 8 ? "settle" : "extend";
        one.memory[what](tokens, nanoUsd);
        one.shared[what](tokens, nanoUsd);
        expect({ seed, step, status: rounded(await shared.peek(set)) }).toEqual({
          seed,
          step,
          status: rounded(memory.peek(set)),
        });
      }
      for (const { quotas } of sets) {
        for (const quota of quotas) expect(await shared.used(quota)).toEqual(await memory.used(quota));
      }
    }
    expect(admitted).toBeGreaterThan(150);
  });
});

/** Microseconds are all that the server knows of time. */
function rounded(status: ReturnType<MemoryLimits["peek"]>) {
  return JSON.parse(JSON.stringify(status), (name, value) => (name === "resetMs" ? Math.round(value) : value));
}
