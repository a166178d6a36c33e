// Frames between the primary process and its workers, and the names under which the dashboard keeps what a browser remembers.
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { grantAt, grantKind, putAdmit, putGrant, reservationAt } from "../../src/workers/link/figures.ts";
import { FrameLink, type LinkListener, type LinkSocket } from "../../src/workers/link/frame-link.ts";
import { until } from "../support/headrace.ts";
import { expectCommitted } from "./committed.ts";

test("frames text and figures for a worker as committed, and reads them back", async () => {
  let sent = Buffer.of();
  const socket: LinkSocket = {
    write(bytes, offset, length) {
      sent = Buffer.concat([sent, Buffer.from(bytes.subarray(offset, offset + length))]);
      return length;
    },
    end() {},
    terminate() {},
  };
  const heard: unknown[] = [];
  const listener: LinkListener = {
    received: (message) => heard.push(message),
    figures: (kind, words, at) =>
      heard.push(kind === grantKind ? grantAt(words, at) : [words.numbers[at], reservationAt(words, at)]),
    closed() {},
  };
  const requestId = "req_01234567-89ab-7def-8123-456789abcdef";
  const reservation = { tokens: 1, nanoUsd: 2, minTokens: 3, minNanoUsd: 4, requestId };
  const sender = new FrameLink(socket, listener);
  sender.send("hello", 1);
  putAdmit(sender, 7, 8, reservation);
  putGrant(sender, 9, 10, { requests: { limit: 5, remaining: 4, resetMs: 1.5 }, tokens: undefined });
  await until(async () => sent.length > 0, "all of it is sent");
  expectCommitted("worker-frames", { frames: sent });
  new FrameLink(socket, listener).data(sent);
  expect(heard).toEqual([
    ["hello", 1],
    [7, reservation],
    [10, 5, 4, 1.5, null, 0, 0],
  ]);
});

test("stores the dashboard's settings under the committed names", async () => {
  const web = join(import.meta.dir, "../../web");
  const names = new Set<string>();
  for await (const path of new Bun.Glob("**/*.{ts,tsx}").scan(web)) {
    if (/\.test\.tsx?$/.test(path)) continue;
    const source = readFileSync(join(web, path), "utf8");
    for (const [, name = ""] of source.matchAll(/["`](headrace-(?:[a-z]+-?)+)[ "`]/g)) names.add(name);
  }
  expectCommitted("dashboard-storage", [...names].sort());
});
