// Turns: the least in flight first, then the longest unserved, in order of arrival within an account.
import { describe, expect, test } from "bun:test";
import type { Priority } from "../../domain/models/policies/priority.ts";
import { FairQueue, type Sharer, type Waiter } from "./fair-queue.ts";

let arrivals = 0;
const sharer = (accountId: string, priority: Priority = "normal", partyId = `key of ${accountId}`): Sharer => ({
  ...{ priority, accountId, partyId },
});
const waiter = (...whose: Parameters<typeof sharer>): Waiter => ({ ...sharer(...whose), order: ++arrivals });

function queueOf(...accounts: string[]): FairQueue<Waiter> {
  const queue = new FairQueue<Waiter>();
  for (const account of accounts) queue.add(waiter(account));
  return queue;
}

/** Serves the next one, who keeps the place unless `ends`. */
function serve(queue: FairQueue<Waiter>, ends = false): string | undefined {
  const next = queue.next();
  if (!next) return undefined;
  queue.remove(next);
  queue.took(next, 1);
  if (ends) queue.gaveBack(next, 1);
  return next.accountId;
}

test("within an account the order of arrival counts, also for one that comes back", () => {
  const queue = new FairQueue<Waiter>();
  const [first, second, third] = [waiter("a"), waiter("a"), waiter("a")];
  for (const one of [first, second, third]) queue.add(one);
  queue.remove(first);
  queue.add(first);
  expect(queue.next()).toBe(first);
  queue.remove(first);
  expect(queue.next()).toBe(second);
});

test("the account with the least in flight is next", () => {
  const queue = queueOf("a", "a", "b");
  queue.took(sharer("a"), 2);
  queue.took(sharer("b"), 3);
  expect(serve(queue)).toBe("a");
  // Three each: b was served longer ago.
  expect(serve(queue)).toBe("b");
  expect(serve(queue)).toBe("a");
  expect(queue.next()).toBeUndefined();
});

test("accounts that keep what they get end up with as much each, whatever they ask for", () => {
  const queue = queueOf(...Array(300).fill("flood"), ...Array(40).fill("b"), ...Array(40).fill("c"));
  const served: Record<string, number> = {};
  for (let i = 0; i < 60; i++) {
    const account = serve(queue) ?? "";
    served[account] = (served[account] ?? 0) + 1;
  }
  expect(served).toEqual({ flood: 20, b: 20, c: 20 });
});

test("one place after the other goes around in turn", () => {
  const queue = queueOf("a", "a", "a", "b", "b", "c");
  expect(Array.from({ length: 6 }, () => serve(queue, true))).toEqual(["a", "b", "c", "a", "b", "a"]);
});

test("a newcomer is served before the account that was served last, even at an engine of one place", () => {
  const queue = queueOf("flood", "flood", "flood");
  expect(serve(queue, true)).toBe("flood");
  queue.add(waiter("b"));
  expect(serve(queue, true)).toBe("b");
});

test("a stream of newcomers starves nobody", () => {
  const queue = queueOf("old", "old");
  serve(queue, true);
  const served: (string | undefined)[] = [];
  for (let i = 0; i < 3; i++) {
    queue.add(waiter(`new ${2 * i}`));
    queue.add(waiter(`new ${2 * i + 1}`));
    served.push(serve(queue, true));
  }
  expect(served.indexOf("old")).toBeGreaterThanOrEqual(0);
  expect(served.indexOf("old")).toBeLessThanOrEqual(2);
});

describe("a full queue", () => {
  test("the last request of the account with the most gives way to an account with fewer", () => {
    const queue = new FairQueue<Waiter>();
    const flood = Array.from({ length: 5 }, () => waiter("flood"));
    for (const one of flood) queue.add(one);
    queue.add(waiter("b"));
    expect(queue.yielding(sharer("new"))).toBe(flood[4]);
    expect(queue.yielding(sharer("b"))).toBe(flood[4]);
  });

  test("an account that has its share gets no more", () => {
    expect(queueOf("a", "a", "b", "b").yielding(sharer("a"))).toBeUndefined();
    expect(queueOf("a", "a", "a", "b", "b").yielding(sharer("b"))).toBeUndefined();
    expect(queueOf("a", "b", "c").yielding(sharer("new"))).toBeUndefined();
  });
});

test("as many are ahead as will be served before, and no more of another account than of one's own", () => {
  const queue = queueOf(...Array(100).fill("flood"), "b", "b");
  expect(queue.ahead(sharer("new"))).toBe(2);
  expect(queue.ahead(sharer("b"))).toBe(2 + 3);
  expect(queue.ahead(sharer("flood"))).toBe(100 + 2);
});

test("nothing is kept of an account that neither waits nor holds a place", () => {
  const queue = new FairQueue<Waiter>();
  for (let i = 0; i < 1_000; i++) {
    const one = waiter(`account ${i}`);
    queue.add(one);
    expect(queue.remove(one)).toBe(true);
    expect(queue.remove(one)).toBe(false);
    queue.took(sharer(`account ${i}`), 2);
    queue.gaveBack(sharer(`account ${i}`), 2);
  }
  expect(queue.waiting).toBe(0);
  expect(queue.accounts).toBe(0);
});
