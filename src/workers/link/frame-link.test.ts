// Messages arrive whole and in the order in which they were sent, whatever the kernel takes at once and however it cuts them.
import { expect, test } from "bun:test";
import { until } from "../../../tests/support/http1/server-fixture.ts";
import { grantAt, grantKind, isPlain, putAdmit, putGrant, reservationAt } from "./figures.ts";
import { FrameLink, type LinkListener, type LinkSocket } from "./frame-link.ts";

const id = "req_01234567-89ab-7def-8123-456789abcdef";
const reservation = { tokens: 1, nanoUsd: 2.5, minTokens: 3, minNanoUsd: Number.MAX_SAFE_INTEGER, requestId: id };
const status = { requests: { limit: 5, remaining: 4, resetMs: 1.5 }, tokens: undefined };

/** What an end heard, in plain values. */
function listening(heard: unknown[]): LinkListener {
  return {
    received: (message) => heard.push(message),
    figures: (kind, words, at) =>
      heard.push(kind === grantKind ? grantAt(words, at) : [words.numbers[at], reservationAt(words, at)]),
    closed: (fault) => heard.push(fault ?? "closed"),
  };
}

/** A socket that takes so many bytes at most at once, and keeps what it took. */
function narrow(maxBytes: number): LinkSocket & { taken: number[] } {
  const taken: number[] = [];
  return {
    taken,
    write(bytes, offset, length) {
      const end = offset + Math.min(length, maxBytes);
      taken.push(...bytes.subarray(offset, end));
      return end - offset;
    },
    end() {},
    terminate() {},
  };
}

test("delivers text and number messages completely and in order, however they are cut", async () => {
  for (const maxBytes of [1, 7, 1_000, 1_000_000]) {
    const socket = narrow(maxBytes);
    const sender = new FrameLink(socket, listening([]));
    const long = "ö".repeat(100_000);
    sender.send("first", { a: null });
    putAdmit(sender, 7, 8, reservation);
    sender.send("long", maxBytes < 1_000 ? "short" : long);
    putGrant(sender, 9, 10, status);
    await until(() => socket.taken.length > 0, "the turn is over");
    for (let before = -1; before !== socket.taken.length; ) {
      before = socket.taken.length;
      sender.drain();
    }
    const heard: unknown[] = [];
    const receiver = new FrameLink(socket, listening(heard));
    for (let at = 0; at < socket.taken.length; at += maxBytes)
      receiver.data(Uint8Array.from(socket.taken.slice(at, at + maxBytes)));
    expect(heard).toEqual([
      ["first", { a: null }],
      [7, reservation],
      ["long", maxBytes < 1_000 ? "short" : long],
      [10, 5, 4, 1.5, null, 0, 0],
    ]);
  }
});

test("ends the link at an impossible message and reads nothing afterwards", () => {
  const heard: unknown[] = [];
  const link = new FrameLink(narrow(100), listening(heard));
  link.data(Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 1, 2, 3));
  link.data(Uint8Array.of(2, 0, 0, 0, 0, 0, 0, 0, 0x5b, 0x5d));
  expect(heard).toEqual(["a message of 4294967295 bytes"]);
});

test("does not send limits with names, tags or hard stops in numbers", () => {
  const limits = { requests: [], tokens: [], quotas: [] };
  expect(isPlain(limits, reservation)).toBe(true);
  expect(isPlain({ ...limits, windows: [] }, reservation)).toBe(false);
  expect(isPlain(limits, { ...reservation, stop: { ...reservation, grows: true } })).toBe(false);
  expect(isPlain(limits, { ...reservation, requestId: undefined })).toBe(false);
});
