// Who is told of a cancellation, when, and how often.
import { expect, test } from "bun:test";
import { Cancellation } from "./cancellation.ts";

test("notifies each listener once, before `cancel` returns, and keeps the first reason", () => {
  const cancellation = new Cancellation();
  const received: string[] = [];
  cancellation.onCancel(() => received.push("a"));
  cancellation.onCancel(() => received.push("b"));
  expect(cancellation.cancelled).toBe(false);
  cancellation.cancel("first");
  cancellation.cancel("second");
  expect(received).toEqual(["a", "b"]);
  expect([cancellation.cancelled, cancellation.reason]).toEqual([true, "first"]);
});

test("calls the method of a listener object in order, unless it was removed", () => {
  const cancellation = new Cancellation();
  const received: string[] = [];
  const listener = (name: string) => ({ cancelled: () => void received.push(name) });
  const leaver = listener("left");
  for (const one of [listener("a"), leaver, listener("b")]) cancellation.onCancel(one);
  cancellation.off(leaver);
  cancellation.cancel();
  cancellation.onCancel(listener("late"));
  expect(received).toEqual(["a", "b", "late"]);
});

test("notifies a late listener at once, and a removed one never", () => {
  const cancellation = new Cancellation();
  const received: string[] = [];
  const leaver = () => received.push("left");
  cancellation.onCancel(leaver);
  cancellation.off(leaver);
  cancellation.cancel();
  cancellation.onCancel(() => received.push("late"));
  expect(received).toEqual(["late"]);
  expect(() => cancellation.throwIfCancelled()).toThrow("The request was cancelled");
});

test("returns a matching AbortSignal before and after the cancellation", () => {
  const before = new Cancellation();
  const { signal } = before;
  expect(signal.aborted).toBe(false);
  before.cancel("why");
  expect([signal.aborted, signal.reason]).toEqual([true, "why"]);
  const after = new Cancellation();
  after.cancel("why");
  expect([after.signal.aborted, after.signal.reason]).toEqual([true, "why"]);
});
