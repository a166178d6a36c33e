// Tests how far an answer may go within its quotas: it reserves more ahead of need, once more at the very end, and by
// the price in USD.
import { expect, test } from "bun:test";
import type { StopLease } from "../domain/limits/limits.ts";
import { AnswerStop, blockTokens } from "./answer-stop.ts";

/** Returns a lease that grants what is left, immediately or when a test says so. */
function leaseOf({ tokens = Number.POSITIVE_INFINITY, nanoUsd = Number.POSITIVE_INFINITY, left = 0, isLate = false }) {
  const asked: number[] = [];
  let answer = () => {};
  const lease: StopLease & { left: number } = {
    ...{ tokens, nanoUsd, mostTokens: tokens, mostNanoUsd: nanoUsd, tightest: undefined, left },
    grow(moreTokens, moreNanoUsd) {
      asked.push(moreTokens);
      const give = () => {
        const unit = tokens === Number.POSITIVE_INFINITY ? "nanoUsd" : "tokens";
        const given = Math.min(lease.left, unit === "tokens" ? moreTokens : moreNanoUsd);
        lease.left -= given;
        Object.assign(lease, { [unit]: lease[unit] + given });
      };
      if (!isLate) return give();
      return new Promise<void>((resolve) => {
        answer = () => resolve(give());
      });
    },
  };
  return { lease, asked, answer: () => answer() };
}

const used = (completionTokens: number, promptTokens = 10) => ({ promptTokens, completionTokens, estimated: true });

test("requests more quota before it is needed, and checks nothing while enough is left", () => {
  const { lease, asked } = leaseOf({ tokens: 510, left: 1_000 });
  const stop = new AnswerStop(lease, undefined, 0);
  expect(stop.dueTokens).toBe(0);
  expect(stop.check(used(1))).toBe("goes_on");
  expect([asked, stop.dueTokens]).toEqual([[], 500 - 128]);
  expect(stop.check(used(400))).toBe("goes_on");
  expect([asked, stop.dueTokens]).toEqual([[blockTokens], 500 + 512 - 128]);
});

test("continues to the last token when the quota has no more, checks again there, and ends", () => {
  const { lease, asked } = leaseOf({ tokens: 110, left: 0 });
  const stop = new AnswerStop(lease, undefined, 0);
  for (let tokens = 1; tokens < 100; tokens++) expect(stop.check(used(tokens))).toBe("goes_on");
  expect([asked.length, stop.dueTokens]).toEqual([1, 100]);
  expect(stop.check(used(100))).toBe("spent");
  expect(asked.length).toBe(2);
});

test("continues with quota that other requests returned meanwhile", () => {
  const { lease } = leaseOf({ tokens: 110, left: 0 });
  const stop = new AnswerStop(lease, undefined, 0);
  expect(stop.check(used(50))).toBe("goes_on");
  lease.left = 7;
  expect(stop.check(used(100))).toBe("goes_on");
  expect(stop.check(used(107))).toBe("spent");
});

test("takes more quota as needed when a prompt turns out longer", () => {
  const { lease, asked } = leaseOf({ tokens: 510, left: 10_000 });
  const stop = new AnswerStop(lease, undefined, 0);
  expect(stop.check(used(1, 5_000))).toBe("goes_on");
  expect(asked[0]).toBe(blockTokens + 5_000 + 1 - 510);
});

test("waits only when no quota is left, and for one request at a time", async () => {
  const { lease, asked, answer } = leaseOf({ tokens: 110, left: 50, isLate: true });
  const stop = new AnswerStop(lease, undefined, 0);
  expect([stop.check(used(20)), stop.check(used(99))]).toEqual(["goes_on", "goes_on"]);
  const waiting = stop.check(used(100));
  expect(waiting).toBeInstanceOf(Promise);
  answer();
  await waiting;
  expect([stop.check(used(100)), asked.length]).toEqual(["goes_on", 2]);
  answer();
  await Bun.sleep(0);
  const last = stop.check(used(150));
  expect(last).toBeInstanceOf(Promise);
  answer();
  await last;
  expect([stop.check(used(150)), asked.length]).toEqual(["spent", 3]);
});

test("converts USD to answer tokens at the answer's price after the prompt and the request fee", () => {
  const price = { input: 1, output: 10, request: 0.00001 };
  const { lease } = leaseOf({ nanoUsd: 100 * 1_000 + 10_000 + 5 * 10_000 + 9_999 });
  const stop = new AnswerStop(lease, price, 0);
  expect(stop.mostTokens(100, price)).toBe(5);
  expect([stop.check(used(4, 100)), stop.check(used(5, 100))]).toEqual(["goes_on", "spent"]);
  // A more expensive fallback gets a lower limit before it is asked.
  expect(stop.mostTokens(100, { input: 1, output: 25, request: 0.00001 })).toBe(2);
  stop.servedBy({ input: 1, output: 1, request: 0.00001 });
  expect(stop.check(used(58, 100))).toBe("goes_on");
  stop.servedBy(undefined);
  expect([stop.mostTokens(100, undefined), stop.check(used(1_000_000, 100))]).toEqual([
    Number.POSITIVE_INFINITY,
    "goes_on",
  ]);
});

test("checks again at once at the new price when another model serves the answer", () => {
  const { lease } = leaseOf({ nanoUsd: 1_000_000, left: 0 });
  const stop = new AnswerStop(lease, { input: 0, output: 1 }, 0);
  expect(stop.check(used(100))).toBe("goes_on");
  expect(stop.dueTokens).toBeGreaterThan(100);
  stop.servedBy({ input: 0, output: 10 });
  expect(stop.dueTokens).toBe(0);
  expect(stop.check(used(100))).toBe("spent");
});

test("allows at least one token, however long the prompt is", () => {
  const { lease } = leaseOf({ tokens: 10 });
  const stop = new AnswerStop(lease, undefined, 0);
  expect([stop.mostTokens(9, undefined), stop.mostTokens(10, undefined), stop.mostTokens(99, undefined)]).toEqual([
    ...[1, 1, 1],
  ]);
});
