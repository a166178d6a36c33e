// Tests the order of turns: fewest requests in flight first, then longest unserved, and by arrival within an account.
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

/** Serves the next request, which keeps its slot unless `ends` is true. */
function serve(queue: FairQueue<Waiter>, ends = false): string | undefined {
  const next = queue.next();
  if (!next) return undefined;
  queue.remove(next);
  queue.took(next, 1);
  if (ends) queue.gaveBack(next, 1);
  return next.accountId;
}

test("serves one account in order of arrival, also a request that comes back", () => {
  const queue = new FairQueue<Waiter>();
  const [first, second, third] = [waiter("a"), waiter("a"), waiter("a")];
  for (const one of [first, second, third]) queue.add(one);
  queue.remove(first);
  queue.add(first);
  expect(queue.next()).toBe(first);
  queue.remove(first);
  expect(queue.next()).toBe(second);
});

test("serves the account with the fewest requests in flight next", () => {
  const queue = queueOf("a", "a", "b");
  queue.took(sharer("a"), 2);
  queue.took(sharer("b"), 3);
  expect(serve(queue)).toBe("a");
  // Both accounts hold three slots, and b was served longer ago.
  expect(serve(queue)).toBe("b");
  expect(serve(queue)).toBe("a");
  expect(queue.next()).toBeUndefined();
});

test("gives accounts that keep their slots equal numbers, whatever they request", () => {
  const queue = queueOf(...Array(300).fill("flood"), ...Array(40).fill("b"), ...Array(40).fill("c"));
  const served: Record<string, number> = {};
  for (let i = 0; i < 60; i++) {
    const account = serve(queue) ?? "";
    served[account] = (served[account] ?? 0) + 1;
  }
  expect(served).toEqual({ flood: 20, b: 20, c: 20 });
});

test("passes one slot around the accounts in turn", () => {
  const queue = queueOf("a", "a", "a", "b", "b", "c");
  expect(Array.from({ length: 6 }, () => serve(queue, true))).toEqual(["a", "b", "c", "a", "b", "a"]);
});

test("serves a new account before the account that was served last, even at an engine with one slot", () => {
  const queue = queueOf("flood", "flood", "flood");
  expect(serve(queue, true)).toBe("flood");
  queue.add(waiter("b"));
  expect(serve(queue, true)).toBe("b");
});

test("starves no account with a stream of new accounts", () => {
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
  test("drops the last request of the account with the most for an account with fewer", () => {
    const queue = new FairQueue<Waiter>();
    const flood = Array.from({ length: 5 }, () => waiter("flood"));
    for (const one of flood) queue.add(one);
    queue.add(waiter("b"));
    expect(queue.yielding(sharer("new"))).toBe(flood[4]);
    expect(queue.yielding(sharer("b"))).toBe(flood[4]);
  });

  test("gives no more room to an account that has its share", () => {
    expect(queueOf("a", "a", "b", "b").yielding(sharer("a"))).toBeUndefined();
    expect(queueOf("a", "a", "a", "b", "b").yielding(sharer("b"))).toBeUndefined();
    expect(queueOf("a", "b", "c").yielding(sharer("new"))).toBeUndefined();
  });
});

test("counts the requests ahead by their turns, not all requests of other accounts", () => {
  const queue = queueOf(...Array(100).fill("flood"), "b", "b");
  expect(queue.ahead(sharer("new"))).toBe(2);
  expect(queue.ahead(sharer("b"))).toBe(2 + 3);
  expect(queue.ahead(sharer("flood"))).toBe(100 + 2);
});

test("forgets most of a thousand idle accounts and their shares", () => {
  const queue = queueOf("old");
  for (let i = 0; i < 1_000; i++) {
    const one = waiter(`account ${i}`);
    queue.add(one);
    expect(queue.remove(one)).toBe(true);
    expect(queue.remove(one)).toBe(false);
    queue.took(sharer(`account ${i}`), 2);
    queue.gaveBack(sharer(`account ${i}`), 2);
  }
  expect([queue.waiting, queue.busy]).toEqual([1, 1]);
  expect(queue.known).toBeLessThanOrEqual(130);
  // A forgotten account returns as a newcomer, behind the account that waits.
  queue.add(waiter("account 999"));
  expect([serve(queue, true), serve(queue, true)]).toEqual(["old", "account 999"]);
});

test("serves ten thousand waiting keys in under a millisecond each and leaves nothing behind", () => {
  const queue = new FairQueue<Waiter>();
  for (let i = 0; i < 10_000; i++) queue.add(waiter(`account ${i}`));
  expect(queue.ahead(sharer("new"))).toBe(10_000);
  const sinceMs = performance.now();
  const served = new Set<string | undefined>();
  for (let i = 0; i < 10_000; i++) served.add(serve(queue, true));
  expect((performance.now() - sinceMs) / 10_000).toBeLessThan(1);
  expect(served.size).toBe(10_000);
  expect(queue.busy).toBe(0);
  expect(queue.known).toBeLessThanOrEqual(64);
});

describe("priorities", () => {
  /** Serves requests that end immediately and are queued again, and counts the turns of each priority. */
  function shares(queue: FairQueue<Waiter>, turns: number): Record<Priority, number> {
    const served = { low: 0, normal: 0, high: 0 };
    for (let i = 0; i < turns; i++) {
      const next = queue.next();
      if (!next) throw new Error("nobody waits");
      queue.took(next, 1);
      queue.remove(next);
      queue.gaveBack(next, 1);
      queue.add(waiter(next.accountId, next.priority));
      served[next.priority]++;
    }
    return served;
  }

  test("gives each waiting priority turns by its share, higher priorities first", () => {
    const queue = new FairQueue<Waiter>();
    for (const priority of ["low", "normal", "high"] as const) queue.add(waiter("a", priority));
    expect(queue.next()?.priority).toBe("high");
    expect(shares(queue, 210)).toEqual({ low: 10, normal: 40, high: 160 });
  });

  test("divides the turns that one priority leaves among the others by their shares", () => {
    const queue = new FairQueue<Waiter>();
    for (const priority of ["low", "normal"] as const) queue.add(waiter("a", priority));
    expect(shares(queue, 100)).toEqual({ low: 20, normal: 80, high: 0 });
  });

  test("gives a priority that arrives later neither credit nor debt for earlier turns", () => {
    const queue = new FairQueue<Waiter>();
    queue.add(waiter("a", "low"));
    queue.add(waiter("a", "normal"));
    shares(queue, 100);
    queue.add(waiter("a", "high"));
    const { low, normal, high } = shares(queue, 210);
    for (const [served, share] of [
      [low, 10],
      [normal, 40],
      [high, 160],
    ] as const) {
      expect(Math.abs(served - share)).toBeLessThanOrEqual(2);
    }
  });

  test("counts a slot that is held longer than usual as several turns", () => {
    const queue = new FairQueue<Waiter>();
    const [low, other] = [waiter("a", "low"), waiter("a", "normal")];
    queue.add(low);
    queue.add(other);
    const round = queue.took(low, 1);
    queue.gaveBack(low, 1, round, 3);
    // Four turns of the low priority equal sixteen of the normal one, and its next turn equals four more.
    expect(shares(queue, 20)).toEqual({ low: 0, normal: 20, high: 0 });
    expect(queue.next()).toBe(low);
  });

  test("starts without credit or debt after the queue was empty", () => {
    for (const more of [-1, 7]) {
      const queue = new FairQueue<Waiter>();
      const before = Array.from({ length: 8 }, () => waiter("a", "low"));
      for (const one of before) queue.add(one);
      const rounds = before.map((one) => {
        const round = queue.took(one, 1);
        queue.remove(one);
        return round;
      });
      for (const priority of ["low", "normal", "high"] as const) queue.add(waiter("b", priority));
      for (const [i, one] of before.entries()) queue.gaveBack(one, 1, rounds[i], more);
      expect(shares(queue, 21)).toEqual({ low: 1, normal: 4, high: 16 });
    }
  });

  test("counts no turn while the queue is empty", () => {
    const queue = new FairQueue<Waiter>();
    for (let i = 0; i < 100; i++) expect(queue.took(sharer("a", "low"), 1)).toBe(0);
    for (const priority of ["low", "normal"] as const) queue.add(waiter("a", priority));
    expect(shares(queue, 5)).toEqual({ low: 1, normal: 4, high: 0 });
  });

  test("passes over a request that is held back and keeps its turn", () => {
    const queue = new FairQueue<Waiter>();
    queue.add(waiter("a", "low"));
    expect(queue.next(({ priority }) => priority === "low")).toBeUndefined();
    queue.add(waiter("a", "high"));
    expect(queue.next(({ priority }) => priority === "low")?.priority).toBe("high");
    expect(queue.waitingOf("low")).toBe(1);
  });

  test("lets no lower priority overtake a wide request that is held back", () => {
    const queue = new FairQueue<Waiter>();
    const wide = waiter("a", "normal");
    queue.add(wide);
    queue.add(waiter("b", "low"));
    expect(queue.next((one) => one === wide)).toBeUndefined();
    queue.add(waiter("c", "high"));
    expect(queue.next((one) => one === wide)?.priority).toBe("high");
  });

  test("drops from a full queue the priority that exceeds its share most", () => {
    const queue = new FairQueue<Waiter>();
    const low = [waiter("a", "low"), waiter("b", "low"), waiter("b", "low")];
    for (const one of low) queue.add(one);
    expect(queue.yielding(sharer("new", "high"))).toBe(low[2]);
    expect(queue.yielding(sharer("b", "low"))).toBeUndefined();
    const many = new FairQueue<Waiter>();
    const high = Array.from({ length: 40 }, () => waiter("a", "high"));
    for (const one of high) many.add(one);
    expect(many.yielding(sharer("new", "low"))).toBe(high[39]);
    many.add(waiter("b", "low"));
    expect(many.yielding(sharer("new", "low"))).toBe(high[39] as Waiter);
    many.add(waiter("c", "low"));
    expect(many.yielding(sharer("new", "low"))).toBeUndefined();
  });
});

describe("users and keys of one account", () => {
  test("does not let a key with a hundred requests delay another key of the account", () => {
    const queue = new FairQueue<Waiter>();
    for (let i = 0; i < 100; i++) queue.add(waiter("a", "normal", "flood"));
    for (let i = 0; i < 3; i++) queue.add(waiter("a", "normal", "beside"));
    const served: string[] = [];
    for (let next = queue.next(); next && served.length < 6; next = queue.next()) {
      queue.remove(next);
      queue.took(next, 1);
      served.push(next.partyId);
    }
    expect(served).toEqual(["flood", "beside", "flood", "beside", "flood", "beside"]);
  });

  test("gives an account no more slots for having many keys", () => {
    const queue = new FairQueue<Waiter>();
    for (let i = 0; i < 50; i++) queue.add(waiter("many", "normal", `key ${i}`));
    for (let i = 0; i < 50; i++) queue.add(waiter("one"));
    const served: Record<string, number> = {};
    for (let i = 0; i < 20; i++) {
      const account = serve(queue) ?? "";
      served[account] = (served[account] ?? 0) + 1;
    }
    expect(served).toEqual({ many: 10, one: 10 });
  });

  test("drops from a full queue a request of the key with the most", () => {
    const queue = new FairQueue<Waiter>();
    const flood = Array.from({ length: 5 }, () => waiter("a", "normal", "flood"));
    for (const one of flood) queue.add(one);
    expect(queue.yielding(sharer("a", "normal", "beside"))).toBe(flood[4]);
    expect(queue.yielding(sharer("a", "normal", "flood"))).toBeUndefined();
  });
});

describe("random arrivals and departures", () => {
  const names = ["a", "b", "c"];

  /** Returns a seeded random generator, so that each run has the same numbers. */
  function dice(seed: number): (sides: number) => number {
    let state = seed;
    return (sides) => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((state / 2 ** 32) * sides);
    };
  }

  function someone(roll: (sides: number) => number): Waiter {
    const account = names[roll(3)] ?? "a";
    return waiter(account, (["low", "normal", "high"] as const)[roll(3)], `${account} ${roll(3)}`);
  }

  test("always has a next request, in order within a key, and starves none", () => {
    for (let seed = 1; seed <= 30; seed++) {
      const roll = dice(seed);
      const queue = new FairQueue<Waiter>();
      const waiting = new Set<Waiter>();
      const held: Waiter[] = [];
      const lastOf = new Map<string, number>();
      /** Number of turns that each waiting request has missed. */
      const passed = new Map<Waiter, number>();
      for (let step = 0; step < 2_000; step++) {
        if (waiting.size < 60 && roll(2) === 0) {
          const one = someone(roll);
          queue.add(one);
          waiting.add(one);
          passed.set(one, 0);
        }
        if (held.length > 0 && (held.length === 4 || roll(2) === 0)) {
          const [one] = held.splice(roll(held.length), 1);
          if (one) queue.gaveBack(one, 1, roll(4) - 1);
        }
        if (held.length === 4) continue;
        const next = queue.next();
        expect(next !== undefined).toBe(waiting.size > 0);
        if (!next) continue;
        queue.took(next, 1);
        expect(queue.remove(next)).toBe(true);
        waiting.delete(next);
        held.push(next);
        const line = `${next.priority} ${next.partyId}`;
        expect(next.order).toBeGreaterThan(lastOf.get(line) ?? 0);
        lastOf.set(line, next.order);
        for (const one of waiting) passed.set(one, (passed.get(one) ?? 0) + 1);
        // At most 60 requests of nine keys in three accounts come first. Low priorities have one of 21 turns, or fewer
        // if they owe turns.
        expect(passed.get(next) ?? 0).toBeLessThan(60 * 21);
      }
      for (const one of waiting) expect(queue.remove(one)).toBe(true);
      for (const one of held) queue.gaveBack(one, 1);
      expect([queue.waiting, queue.busy]).toEqual([0, 0]);
    }
  });

  test("serves as many requests before one as it was told, if none arrives or leaves", () => {
    for (let seed = 1; seed <= 50; seed++) {
      const roll = dice(seed);
      const queue = new FairQueue<Waiter>();
      for (let i = 0; i < 40; i++) queue.add(someone(roll));
      const own = someone(roll);
      const reported = queue.ahead(own);
      queue.add(own);
      expect(queue.ahead(own, own)).toBe(reported);
      let before = 0;
      // Each slot is released immediately, so that only turns decide the order.
      for (let next = queue.next(); next && next !== own; next = queue.next()) {
        queue.took(next, 1);
        queue.remove(next);
        queue.gaveBack(next, 1);
        before++;
      }
      // A party that has just had a turn is behind all others of its kind, so each may have one turn more or less than
      // predicted.
      expect(Math.abs(before - reported)).toBeLessThanOrEqual(8);
    }
  });
});
