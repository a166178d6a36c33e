import { expect, test } from "bun:test";
import { Cancellation } from "../base/cancellation.ts";
import { AccountTurns } from "./account-turns.ts";

test("runs a bounded number of tasks, rotates between accounts, and refuses tasks above an account's bound", async () => {
  const turns = new AccountTurns({ maxRunning: 1, maxOfAccount: 3, what: "searches" });
  const ends: (() => void)[] = [];
  const begun: string[] = [];
  const run = (account: string, name: string) =>
    turns.run(account, () => {
      begun.push(name);
      return new Promise<void>((resolve) => ends.push(resolve));
    });
  const all = [run("acct_1", "first"), run("acct_1", "second"), run("acct_1", "third"), run("acct_2", "other")];
  expect(begun).toEqual(["first"]);
  await expect(run("acct_1", "fourth")).rejects.toMatchObject({
    code: "rate_limit_exceeded",
    message: "3 searches of this account are under way. Retry in 1 s, or when one of them has ended.",
  });
  for (let i = 0; i < all.length; i++) {
    expect(begun).toHaveLength(i + 1);
    ends[i]?.();
    await new Promise(setImmediate);
    await new Promise(setImmediate);
  }
  await Promise.all(all);
  expect(begun).toEqual(["first", "second", "other", "third"]);
  const again = run("acct_1", "again");
  ends.at(-1)?.();
  await again;
});

test("frees the turn of a task that fails", async () => {
  const turns = new AccountTurns({ maxRunning: 1, maxOfAccount: 1, what: "searches" });
  await expect(turns.run("acct_1", () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  expect(await turns.run("acct_1", async () => "done")).toBe("done");
});

test("lets other event-loop work run between two tasks", async () => {
  const turns = new AccountTurns({ maxRunning: 1, maxOfAccount: 10, what: "searches" });
  const done: string[] = [];
  const tasks = ["first", "second", "third"].map((name) => turns.run("acct_1", () => done.push(name)));
  setImmediate(() => done.push("other work"));
  await Promise.all(tasks);
  expect(done.indexOf("other work")).toBeLessThan(done.indexOf("third"));
});

test("drops a waiting task whose client leaves and no longer counts it", async () => {
  const turns = new AccountTurns({ maxRunning: 1, maxOfAccount: 3, what: "searches" });
  const first = Promise.withResolvers<void>();
  const done: string[] = [];
  const running = turns.run("acct_1", () => first.promise);
  const left = [new Cancellation(), new Cancellation()];
  const gone = left.map((one) => turns.run("acct_1", () => done.push("gone"), one));
  for (const one of left) one.cancel();
  const reason = expect.objectContaining({ message: "The client left before its turn." });
  expect(await Promise.allSettled(gone)).toEqual(left.map(() => ({ status: "rejected", reason })));
  const others = [turns.run("acct_1", () => done.push("second")), turns.run("acct_2", () => done.push("other"))];
  first.resolve();
  await Promise.all([running, ...others]);
  expect(done).toEqual(["second", "other"]);
});

test("runs the next task if a client leaves as its task begins", async () => {
  const turns = new AccountTurns({ maxRunning: 1, maxOfAccount: 3, what: "searches" });
  const first = Promise.withResolvers<void>();
  const clientGone = new Cancellation();
  const done: string[] = [];
  const tasks = [
    turns.run("acct_1", () => first.promise),
    turns.run("acct_1", () => done.push("second"), clientGone),
    turns.run("acct_1", () => done.push("third")),
  ];
  first.resolve();
  await tasks[0];
  clientGone.cancel();
  await Promise.all(tasks);
  expect(done).toEqual(["second", "third"]);
});

test("pauses between tasks for as long as the last task took", async () => {
  const turns = new AccountTurns({ maxRunning: 1, maxOfAccount: 10, what: "reports", rests: true });
  let ended = 0;
  const first = turns.run("acct_1", () => {
    Bun.sleepSync(50);
    ended = performance.now();
  });
  const waited = await turns.run("acct_2", () => performance.now() - ended);
  await first;
  expect(waited).toBeGreaterThanOrEqual(45);
});
