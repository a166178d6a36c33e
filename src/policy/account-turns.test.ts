import { expect, test } from "bun:test";
import { AccountTurns } from "./account-turns.ts";

test("runs so many tasks at a time, an account after the other, and refuses those beyond what an account may have", async () => {
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

test("gives back the turn of a task that fails", async () => {
  const turns = new AccountTurns({ maxRunning: 1, maxOfAccount: 1, what: "searches" });
  await expect(turns.run("acct_1", () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  expect(await turns.run("acct_1", async () => "done")).toBe("done");
});

test("lets other work of the event loop come between two tasks", async () => {
  const turns = new AccountTurns({ maxRunning: 1, maxOfAccount: 10, what: "searches" });
  const done: string[] = [];
  const tasks = ["first", "second", "third"].map((name) => turns.run("acct_1", () => done.push(name)));
  setImmediate(() => done.push("other work"));
  await Promise.all(tasks);
  expect(done.indexOf("other work")).toBeLessThan(done.indexOf("third"));
});
