// Tests that a key has its maximum of slots, that slots are released, and that keys do not share them.

import { expect, test } from "bun:test";
import { accountFor, keyRecordFor, principalFor } from "../../tests/support/principal.ts";
import { BufferedBytes } from "../base/bytes/buffered-bytes.ts";
import { OpenRequests } from "./open-requests.ts";

const ledger = new BufferedBytes(1_000_000);
const of = (limitId: string, id = limitId) =>
  principalFor({ account: accountFor({ id: "acct" }), keys: [keyRecordFor({ id, limitId })] });

function refusal(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  return undefined;
}

// hardening: F10
test("limits a key's open requests and frees each slot for reuse, apart from other keys", () => {
  const open = new OpenRequests(() => 2, ledger);
  const [first] = [open.enter(of("a")), open.enter(of("a"))];
  expect(refusal(() => open.enter(of("a")))).toMatchObject({
    code: "rate_limit_exceeded",
    retryAfterSeconds: 1,
    message:
      "This key has 2 requests open, the most that it may have at the same time. Retry when one of them has ended.",
  });
  open.enter(of("b"));
  first?.release();
  open.enter(of("a"));
  expect(refusal(() => open.enter(of("a")))).toBeDefined();
});

test("shares the slots between the two keys of a rotation", () => {
  const open = new OpenRequests(() => 1, ledger);
  open.enter(of("a", "old"));
  expect(refusal(() => open.enter(of("a", "new")))).toBeDefined();
});

test("applies a changed limit at once and lets open requests finish", () => {
  let most = 3;
  const open = new OpenRequests(() => most, ledger);
  const places = [1, 2, 3].map(() => open.enter(of("a")));
  most = 1;
  for (const place of places) {
    expect(refusal(() => open.enter(of("a")))).toBeDefined();
    place.release();
  }
  open.enter(of("a"));
});

test("keeps a key's used slots when its credential is loaded again", () => {
  const open = new OpenRequests(() => 1, ledger);
  const before = of("a");
  open.enter(before).release();
  const place = open.enter(before);
  expect(refusal(() => open.enter(of("a")))).toBeDefined();
  place.release();
  open.enter(of("a"));
  expect(refusal(() => open.enter(before))).toBeDefined();
});

test("forgets a key after its last request, but not while a request is open or bytes are held", () => {
  const open = new OpenRequests(() => 1, ledger);
  const busy = Array.from({ length: 1_000 }, (_, n) => of(`busy${n}`));
  const places = busy.map((principal) => open.enter(principal));
  const holding = open.enter(of("holding"));
  expect(holding.memoryAccount.take("requests", 100)).toBeUndefined();
  holding.release();
  const idle = Array.from({ length: 10_000 }, (_, n) => of(`${n}`));
  for (const principal of idle) open.enter(principal).release();
  expect(open.tracked).toBeWithin(1_001, 1_200);
  for (const principal of busy) expect(refusal(() => open.enter(principal))).toBeDefined();
  const again = open.enter(of("holding"));
  expect(again.memoryAccount).toBe(holding.memoryAccount);
  again.release();
  for (const place of places) place.release();
  holding.memoryAccount.release("requests", 100);
  for (const principal of idle) open.enter(principal).release();
  expect(open.tracked).toBeLessThan(200);
  expect(open.enter(of("holding")).memoryAccount).not.toBe(holding.memoryAccount);
  // A key that was dropped is counted again like any other.
  open.enter(of("0"));
  expect(refusal(() => open.enter(of("0")))).toBeDefined();
});

test("forgets a key once if it was dropped while a session of it goes on", () => {
  const open = new OpenRequests(() => 1, ledger);
  const session = open.enter(of("session"));
  session.release();
  const others = Array.from({ length: 200 }, (_, n) => of(`${n}`));
  for (let times = 0; times < 300; times++) {
    for (const principal of others) open.enter(principal).release();
    expect(session.memoryAccount.take("unsent", 10)).toBeUndefined();
    session.memoryAccount.release("unsent", 10);
  }
  expect(open.tracked).toBeWithin(128, 201);
});

test("keeps keys that are used in rotation", () => {
  const open = new OpenRequests(() => 1, ledger);
  const all = Array.from({ length: 100 }, (_, n) => of(`${n}`));
  const eachOnce = () =>
    all.map((principal) => {
      const place = open.enter(principal);
      place.release();
      return place;
    });
  const places = eachOnce();
  for (let times = 0; times < 10; times++) expect(eachOnce().every((place, n) => place === places[n])).toBe(true);
});

test("charges bytes lent to another replica's request to the same key without using a slot", () => {
  const open = new OpenRequests(() => 1, ledger);
  const principal = of("a", "new");
  const { memoryAccount } = open.enter(principal);
  const places = [1, 2].map(() => open.lend({ key: "a", account: "acct" }));
  expect(places.map((place) => place.memoryAccount)).toEqual([memoryAccount, memoryAccount]);
  expect(memoryAccount.ids).toEqual({ key: "a", account: "acct" });
  const alone = open.lend({ key: "b", account: "acct" });
  const others = Array.from({ length: 2_000 }, (_, n) => of(`${n}`));
  const laterOn = () => {
    for (let times = 0; times < 4; times++) {
      for (const other of others) open.enter(other).release();
    }
    return open.lend({ key: "b", account: "acct" });
  };
  const again = laterOn();
  expect(again.memoryAccount).toBe(alone.memoryAccount);
  alone.release();
  again.release();
  expect(laterOn().memoryAccount).not.toBe(alone.memoryAccount);
});

test("counts the requests of one principal separately on two servers", () => {
  const [one, other] = [new OpenRequests(() => 1, ledger), new OpenRequests(() => 1, ledger)];
  const principal = of("a");
  one.enter(principal);
  other.enter(principal);
  for (const open of [one, other]) expect(refusal(() => open.enter(principal))).toBeDefined();
});
