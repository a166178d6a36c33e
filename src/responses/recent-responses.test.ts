// Responses held by a connection: bounded, counted against the key's memory, and released.
import { expect, test } from "bun:test";
import { BufferedBytes } from "../base/bytes/buffered-bytes.ts";
import { RecentResponses } from "./recent-responses.ts";

const item = (text: string) => ({ type: "message", id: `msg_${text}`, content: text });

test("holds the last four responses of a connection, and releases all at its end", () => {
  const ledger = new BufferedBytes(1_000_000);
  const held = new RecentResponses(ledger.visitors);
  for (const id of ["a", "b", "c", "d", "e"]) held.add(id, [item(id)]);
  expect(held.find("a")).toBeUndefined();
  expect(["b", "c", "d", "e"].map((id) => held.find(id))).toEqual(["b", "c", "d", "e"].map((id) => [item(id)]));
  expect(ledger.byKind.chats).toBeGreaterThan(0);
  held.add("e", [item("again")]);
  expect(held.find("e")).toEqual([item("again")]);
  held.release();
  expect([ledger.byKind.chats, held.find("e")]).toEqual([0, undefined]);
});

test("does not hold a response that exceeds the memory bound", () => {
  const ledger = new BufferedBytes(10_000);
  const held = new RecentResponses(ledger.visitors);
  held.add("a", [item("x".repeat(20_000))]);
  expect([ledger.byKind.chats, held.find("a")]).toEqual([0, undefined]);
});

test("drops older responses for a new one when memory is short", () => {
  const ledger = new BufferedBytes(60_000);
  const held = new RecentResponses(ledger.visitors);
  for (const id of ["a", "b", "c"]) held.add(id, [item(id + "x".repeat(4_500))]);
  expect(["b", "c"].map((id) => held.find(id) !== undefined)).toEqual([false, true]);
});
