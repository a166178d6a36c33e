import { expect, test } from "bun:test";
import { AccountTurns } from "./account-turns.ts";

test("runs as many tasks as may at a time, and refuses those beyond what one account may have", async () => {
  const turns = new AccountTurns({ maxRunning: 1, maxOfAccount: 2, what: "searches" });
  const ends: (() => void)[] = [];
  const begun: string[] = [];
  const run = (account: string, name: string) =>
    turns.run(account, () => {
      begun.push(name);
      return new Promise<void>((resolve) => ends.push(resolve));
    });
  const all = [run("acct_1", "first"), run("acct_1", "second"), run("acct_2", "other")];
  expect(begun).toEqual(["first"]);
  await expect(run("acct_1", "third")).rejects.toMatchObject({
    code: "rate_limit_exceeded",
    message: "2 searches of this account are under way. Retry in 1 s, or when one of them has ended.",
  });
  for (let i = 0; i < 3; i++) {
    ends[i]?.();
    await all[i];
    await new Promise(setImmediate);
  }
  expect(begun).toEqual(["first", "second", "other"]);
  const again = run("acct_1", "again");
  ends[3]?.();
  await again;
});

test("gives back the turn of a task that fails", async () => {
  const turns = new AccountTurns({ maxRunning: 1, maxOfAccount: 1, what: "searches" });
  await expect(turns.run("acct_1", () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  expect(await turns.run("acct_1", async () => "done")).toBe("done");
});
