// Replay of events after a broken connection, and the bounds of what is kept.
import { expect, test } from "bun:test";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { AccountMemory, BufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { KeptEvents } from "./kept-events.ts";

const note = (i: number, data = "") => ({ jsonrpc: "2.0" as const, method: "note", params: { i, data } });

function kept() {
  const ledger = new BufferedBytes(64 * 1024 * 1024);
  const clock = manualClock();
  return { ledger, clock, events: new KeptEvents(ledger.memoryAccount(new AccountMemory()), clock) };
}

async function after(events: KeptEvents, id: string): Promise<unknown[]> {
  const sent: unknown[] = [];
  await events.replayEventsAfter(id, {
    send: async (_id, message) => {
      sent.push("params" in message ? message.params : message);
    },
  });
  return sent;
}

test("resumes a stream behind the last received event, with its own events only", async () => {
  const { events } = kept();
  const first = await events.storeEvent("a", note(1));
  await events.storeEvent("b", note(2));
  await events.storeEvent("a", note(3));
  expect(await events.getStreamIdForEventId(first)).toBe("a");
  expect(await after(events, first)).toEqual([{ i: 3, data: "" }]);
});

test("bounds kept events by number, bytes and time, counts them for the client, and releases them", async () => {
  const { events, ledger, clock } = kept();
  const first = await events.storeEvent("a", note(0));
  for (let i = 1; i <= 1_000; i++) await events.storeEvent("a", note(i, "x".repeat(10_000)));
  expect(await events.getStreamIdForEventId(first)).toBeUndefined();
  expect(ledger.byKind.unsent).toBeGreaterThan(400_000);
  expect(ledger.byKind.unsent).toBeLessThanOrEqual(512 * 1024);
  clock.advance(121_000);
  events.expire();
  expect(ledger.byKind.unsent).toBe(0);
  await events.storeEvent("a", note(1));
  events.end();
  expect(ledger.total).toBe(0);
});
