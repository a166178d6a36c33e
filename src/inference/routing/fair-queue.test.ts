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

test("of thousands of accounts that neither wait nor hold a place few are kept, and what they had counts no more", () => {
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
  // It comes back as a newcomer, and behind who waits.
  queue.add(waiter("account 999"));
  expect([serve(queue, true), serve(queue, true)]).toEqual(["old", "account 999"]);
});

test("ten thousand keys that wait at once leave nothing that grows, and each turn of theirs takes well under a millisecond", () => {
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
  /** Takes turns with what is served at once, and counts them. */
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

  test("where all of them wait, each has turns by its share, the higher ones first", () => {
    const queue = new FairQueue<Waiter>();
    for (const priority of ["low", "normal", "high"] as const) queue.add(waiter("a", priority));
    expect(queue.next()?.priority).toBe("high");
    expect(shares(queue, 210)).toEqual({ low: 10, normal: 40, high: 160 });
  });

  test("what one leaves is shared by the others as their shares are", () => {
    const queue = new FairQueue<Waiter>();
    for (const priority of ["low", "normal"] as const) queue.add(waiter("a", priority));
    expect(shares(queue, 100)).toEqual({ low: 20, normal: 80, high: 0 });
  });

  test("whoever comes later claims nothing for the time before, and is not behind for what came alone", () => {
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

  test("places that are held longer than usual count as more turns", () => {
    const queue = new FairQueue<Waiter>();
    const [low, other] = [waiter("a", "low"), waiter("a", "normal")];
    queue.add(low);
    queue.add(other);
    const round = queue.took(low, 1);
    queue.gaveBack(low, 1, round, 3);
    // Its four turns are sixteen of the other, and its next one is four more.
    expect(shares(queue, 20)).toEqual({ low: 0, normal: 20, high: 0 });
    expect(queue.next()).toBe(low);
  });

  test("what was counted before the queue was empty is neither owed nor given back in a later one", () => {
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

  test("what is taken while nobody waits is no turn", () => {
    const queue = new FairQueue<Waiter>();
    for (let i = 0; i < 100; i++) expect(queue.took(sharer("a", "low"), 1)).toBe(0);
    for (const priority of ["low", "normal"] as const) queue.add(waiter("a", priority));
    expect(shares(queue, 5)).toEqual({ low: 1, normal: 4, high: 0 });
  });

  test("one that is held back is passed over, and keeps its turn", () => {
    const queue = new FairQueue<Waiter>();
    queue.add(waiter("a", "low"));
    expect(queue.next(({ priority }) => priority === "low")).toBeUndefined();
    queue.add(waiter("a", "high"));
    expect(queue.next(({ priority }) => priority === "low")?.priority).toBe("high");
    expect(queue.waitingOf("low")).toBe(1);
  });

  test("where it is held back as it is wide, no other of the lower priorities goes before it, or it would never have its places", () => {
    const queue = new FairQueue<Waiter>();
    const wide = waiter("a", "normal");
    queue.add(wide);
    queue.add(waiter("b", "low"));
    expect(queue.next((one) => one === wide)).toBeUndefined();
    queue.add(waiter("c", "high"));
    expect(queue.next((one) => one === wide)?.priority).toBe("high");
  });

  test("a full queue takes from the priority that has most of it beyond its share", () => {
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

describe("people and keys of one account", () => {
  test("a key with a hundred requests does not hold up the one beside it", () => {
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

  test("an account has no more places for its many keys", () => {
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

  test("in a full queue the key with the most gives way to the one beside it", () => {
    const queue = new FairQueue<Waiter>();
    const flood = Array.from({ length: 5 }, () => waiter("a", "normal", "flood"));
    for (const one of flood) queue.add(one);
    expect(queue.yielding(sharer("a", "normal", "beside"))).toBe(flood[4]);
    expect(queue.yielding(sharer("a", "normal", "flood"))).toBeUndefined();
  });
});

describe("whatever comes and goes", () => {
  const names = ["a", "b", "c"];

  /** The same numbers each time. */
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

  test("somebody is next whenever somebody waits, each in order within a key, and nobody waits for ever", () => {
    for (let seed = 1; seed <= 30; seed++) {
      const roll = dice(seed);
      const queue = new FairQueue<Waiter>();
      const waiting = new Set<Waiter>();
      const held: Waiter[] = [];
      const lastOf = new Map<string, number>();
      /** Turns that went by since it could have been served. */
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
        // Nine keys in three accounts, at most 60 before it, of which low priorities have one of 21 turns, or fewer by what they owe.
        expect(passed.get(next) ?? 0).toBeLessThan(60 * 21);
      }
      for (const one of waiting) expect(queue.remove(one)).toBe(true);
      for (const one of held) queue.gaveBack(one, 1);
      expect([queue.waiting, queue.busy]).toEqual([0, 0]);
    }
  });

  test("as many are served before a request as it was told when it came, where nobody comes or goes meanwhile", () => {
    for (let seed = 1; seed <= 50; seed++) {
      const roll = dice(seed);
      const queue = new FairQueue<Waiter>();
      for (let i = 0; i < 40; i++) queue.add(someone(roll));
      const own = someone(roll);
      const told = queue.ahead(own);
      queue.add(own);
      expect(queue.ahead(own, own)).toBe(told);
      let before = 0;
      // Each place is given back at once, so that all that counts is whose turn it is.
      for (let next = queue.next(); next && next !== own; next = queue.next()) {
        queue.took(next, 1);
        queue.remove(next);
        queue.gaveBack(next, 1);
        before++;
      }
      // Turns go around: who had one a moment ago is behind all others of its kind, one turn more or less of each.
      expect(Math.abs(before - told)).toBeLessThanOrEqual(8);
    }
  });
});
