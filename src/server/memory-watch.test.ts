// Memory that is full for a while is told from a burst, and there is room again as soon as there is.
import { expect, test } from "bun:test";
import { manualClock } from "../../tests/support/manual-clock.ts";
import { AccountMemory, BufferedBytes } from "../base/bytes/buffered-bytes.ts";
import { MemoryWatch } from "./memory-watch.ts";

test("reports memory as full for long after three seconds at every poll, until there is room", () => {
  const ledger = new BufferedBytes(1_000_000);
  const clock = manualClock();
  const watch = new MemoryWatch(ledger, clock);
  const after = (ms: number) => {
    clock.advance(ms);
    watch.check();
    return watch.isFullForLong;
  };
  expect(after(10_000)).toBe(false);
  ledger.add("chats", 1_000_000);
  expect([after(100), after(2_900), after(99)]).toEqual([false, false, false]);
  ledger.add("chats", -1_000_000);
  expect(after(1)).toBe(false);
  ledger.add("chats", 1_000_000);
  expect([after(100), after(2_999), after(1)]).toEqual([false, false, true]);
  ledger.add("chats", -1_000_000);
  expect(watch.isFullForLong).toBe(false);
});

test("calls memory full exactly when an idle key's usual request is refused", () => {
  const ledger = new BufferedBytes(1_000_000);
  const usual = Math.floor(ledger.maxBytes / 2048);
  ledger.add("chats", ledger.maxBytes - usual);
  expect(ledger.isFull).toBe(false);
  const key = ledger.memoryAccount(new AccountMemory());
  expect(key.take("requests", usual)).toBeUndefined();
  expect([ledger.isFull, key.take("requests", 1)?.code]).toEqual([true, "service_unavailable"]);
});
