// The ledger of bytes in memory: bounded over all, shared fairly, and whole again once everything is given back.
import { expect, test } from "bun:test";
import fc from "fast-check";
import { AccountMemory, BufferedBytes, bufferKinds, type MemoryAccount } from "./buffered-bytes.ts";

/** Takes steps of one byte until it is refused; gives how many, and the refusal. */
function fill(memoryAccount: MemoryAccount) {
  let bytes = 0;
  for (;;) {
    const refusal = memoryAccount.take("requests", 1);
    if (refusal) return { bytes, refusal };
    bytes++;
  }
}

test("limits a key to a third of the shared bytes, then answers 429 for the key", () => {
  const ledger = new BufferedBytes(1_400);
  const { bytes, refusal } = fill(ledger.memoryAccount(new AccountMemory()));
  expect(bytes).toBe(408);
  expect(refusal).toMatchObject({ code: "rate_limit_exceeded", retryAfterSeconds: 1 });
  expect(refusal.message).toBe(
    "The requests of this key that are under way hold 408 bytes of bodies and answers, the most that they may. Retry when one of them has ended.",
  );
  expect(ledger.refused).toEqual({ key: 1, account: 0, process: 0 });
});

test("limits the keys of an account to half of the shared bytes, then answers 429 for the account", () => {
  const ledger = new BufferedBytes(1_400);
  const account = new AccountMemory();
  const keys = [1, 2, 3, 4].map(() => ledger.memoryAccount(account));
  const all = keys.map(fill);
  expect(account.total).toBe(612);
  expect(all.at(-1)?.refusal.message).toContain("this account");
});

test("detects bytes that were released to another account than they were taken from", () => {
  const ledger = new BufferedBytes(1_400);
  const [one, other] = [ledger.memoryAccount(new AccountMemory()), ledger.memoryAccount(new AccountMemory())];
  one.take("requests", 10);
  expect(ledger.memoryAccounts).toBe(1);
  other.release("requests", 10);
  expect([ledger.total, ledger.memoryAccounts]).toEqual([0, 2]);
  one.release("requests", 10);
  expect([ledger.total, ledger.memoryAccounts]).toEqual([-10, 1]);
  other.take("requests", 10);
  expect([ledger.total, ledger.memoryAccounts]).toEqual([0, 0]);
});

// hardening: F13
test("leaves room for a usual request however many accounts take all they can", () => {
  const ledger = new BufferedBytes(1_000_000);
  for (let n = 0; n < 50; n++) {
    const { bytes, refusal } = fill(ledger.memoryAccount(new AccountMemory()));
    expect(bytes).toBeGreaterThanOrEqual(ledger.maxBytes / 2048 - 1);
    if (n > 1) expect(refusal).toMatchObject({ code: "service_unavailable", retryAfterSeconds: 2 });
  }
  expect(ledger.total).toBeLessThan(ledger.maxBytes);
});

// hardening: F13
test("keeps figures and bound consistent and ends at zero, in any order of steps", () => {
  const step = fc.record({ key: fc.nat(5), kind: fc.nat(bufferKinds.length - 1), bytes: fc.nat(500) });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const ledger = new BufferedBytes(3_000);
      const accounts = [new AccountMemory(), new AccountMemory()];
      const keys = [0, 1, 2, 3, 4, 5].map((n) => ledger.memoryAccount(accounts[n % 2] as AccountMemory));
      const taken: (() => void)[] = [];
      for (const { key, kind, bytes } of steps) {
        const memoryAccount = keys[key] as MemoryAccount;
        const name = bufferKinds[kind] ?? "requests";
        if (!memoryAccount.take(name, bytes)) taken.push(() => memoryAccount.release(name, bytes));
        if (bytes % 3 === 0) taken.shift()?.();
        expect(ledger.total).toBeLessThanOrEqual(ledger.maxBytes);
        expect(Object.values(ledger.byKind).reduce((sum, held) => sum + held, 0)).toBe(ledger.total);
        for (const { total } of accounts) expect(total).toBeLessThanOrEqual(ledger.maxBytes / 2);
      }
      for (const giveBack of taken) giveBack();
      expect([ledger.total, ledger.memoryAccounts, accounts[0]?.total, accounts[1]?.total]).toEqual([0, 0, 0, 0]);
    }),
  );
});

test("allows one request at a time copies larger than its key's share", () => {
  const ledger = new BufferedBytes(1_400);
  const [one, other] = [ledger.memoryAccount(new AccountMemory()), ledger.memoryAccount(new AccountMemory())];
  const first = ledger.takeCopies(one, 600);
  expect(first).toBeFunction();
  expect([one.total, ledger.total]).toEqual([0, 600]);
  expect(ledger.takeCopies(other, 600)).toMatchObject({ code: "rate_limit_exceeded", retryAfterSeconds: 1 });
  if (typeof first === "function") first();
  expect(ledger.takeCopies(other, 600)).toBeFunction();
  expect(ledger.takeCopies(one, 1_000)).toMatchObject({ code: "rate_limit_exceeded" });
});
