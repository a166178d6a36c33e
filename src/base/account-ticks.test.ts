// Each account begins one piece of work per tick of the event loop.
import { expect, test } from "bun:test";
import { AccountTicks } from "./account-ticks.ts";

test("runs an account's work in order, one piece in each tick", async () => {
  const ticks = new AccountTicks();
  let tick = 0;
  let isOver = false;
  const count = () => {
    tick++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  expect(ticks.next("acct_1")).toBeUndefined();
  const began: [name: string, tick: number][] = [];
  const begin = async (name: string) => {
    await ticks.next("acct_1");
    began.push([name, tick]);
  };
  await Promise.all(["b", "c", "d", "e"].map(begin));
  isOver = true;
  expect(began.map(([name]) => name)).toEqual(["b", "c", "d", "e"]);
  expect(new Set(began.map(([, at]) => at)).size).toBe(4);
});

test("runs the work of another account or of an idle one at once", async () => {
  const ticks = new AccountTicks();
  ticks.next("acct_1");
  const waiting = ticks.next("acct_1");
  expect(waiting).toBeInstanceOf(Promise);
  expect(ticks.next("acct_2")).toBeUndefined();
  await waiting;
  await new Promise(setImmediate);
  await new Promise(setImmediate);
  expect(ticks.next("acct_1")).toBeUndefined();
});
