// Caching of server lists: shared by all users of a session, bounded, and counted on no caller's account.
import { expect, test } from "bun:test";
import { serving, TestLink } from "../../../tests/support/tool-desk.ts";
import { bufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { systemClock } from "../../base/clock.ts";
import type { ToolAnswer } from "../../domain/tools/client-session.ts";
import { ServerLists } from "./server-lists.ts";

const tool = (length: number) => ({ name: "look", description: "x".repeat(length), inputSchema: { type: "object" } });

test("reads a shared list once, without the memory account, capabilities or callbacks of any caller", async () => {
  const link = new TestLink(serving([tool(1)], () => ({ result: {} })));
  const lists = new ServerLists(systemClock);
  const [first, second] = [lists.of(link, "tools"), lists.of(link, "tools")];
  expect(await first).toBe(await second);
  expect(link.exchanges).toHaveLength(1);
  const { memoryAccount, clientCapabilities, notified, asked } = link.exchanges[0] ?? { memoryAccount: undefined };
  expect([memoryAccount, clientCapabilities, notified, asked]).toEqual([
    bufferedBytes.bounded,
    undefined,
    undefined,
    undefined,
  ]);
});

test("refuses a list of more than 8 MiB in any number of pages", async () => {
  const page = { tools: [tool(1_000_000)] };
  const link = new TestLink((_, { cursor = "0" }) => ({ result: { ...page, nextCursor: String(Number(cursor) + 1) } }));
  await expect(new ServerLists(systemClock).of(link, "tools")).rejects.toMatchObject({
    code: "upstream_error",
    detail: "tools/list: more than 8388608 characters",
  });
  expect(link.asked).toHaveLength(9);
});

test("ends a list at a repeated cursor, with each item once", async () => {
  const pages: Record<string, number[]> = { "0": [1, 2], a: [3], b: [4, 3] };
  const link = new TestLink((_, { cursor = "0" }) => ({
    result: { tools: pages[String(cursor)]?.map((size) => tool(size)), nextCursor: cursor === "0" ? "a" : "b" },
  }));
  const items = await new ServerLists(systemClock).of(link, "tools");
  expect(items).toEqual([1, 2, 3, 4].map((size) => tool(size)));
  expect(link.asked).toHaveLength(3);
});

test("bounds cached lists to the 64 MiB read last, and drops each when it changes", async () => {
  const lists = new ServerLists(systemClock);
  const before = bufferedBytes.byKind.cache;
  const links = Array.from({ length: 20 }, () => new TestLink(serving([tool(6_000_000)], () => ({ result: {} }))));
  for (const link of links) await lists.of(link, "tools");
  expect(bufferedBytes.byKind.cache - before).toBeWithin(60_000_000, 64 * 1024 * 1024);
  for (const link of links.slice(-10)) await lists.of(link, "tools");
  expect(links.map(({ asked }) => asked.length)).toEqual(links.map(() => 1));
  for (const link of links) link.changed("notifications/tools/list_changed");
  expect(bufferedBytes.byKind.cache).toBe(before);
});

test("reads a list anew for a client that asks for a fresh one, at most once a second", async () => {
  const link = new TestLink(serving([tool(1)], () => ({ result: {} })));
  let now = 0;
  const lists = new ServerLists({ monotonicMs: () => now });
  const read = (isFresh: boolean) => lists.of(link, "tools", undefined, isFresh);
  await read(false);
  now = 999;
  await read(true);
  expect(link.asked).toHaveLength(1);
  now = 1_001;
  await read(false);
  expect(link.asked).toHaveLength(1);
  await Promise.all([read(true), read(true)]);
  expect(link.asked).toHaveLength(2);
});

test("returns the old list to other callers while a fresh read runs, and keeps it if the read fails", async () => {
  let answering = Promise.withResolvers<ToolAnswer>();
  const link = new TestLink(() => answering.promise);
  let now = 0;
  const lists = new ServerLists({ monotonicMs: () => now });
  const read = (isFresh: boolean) => lists.of(link, "tools", undefined, isFresh);
  answering.resolve({ result: { tools: [tool(1)] } });
  const old = await read(false);
  now = 1_001;
  answering = Promise.withResolvers();
  const failing = read(true);
  expect(await read(false)).toBe(old);
  answering.resolve({ error: { code: -32_000, message: "Too many requests" } });
  await expect(failing).rejects.toMatchObject({ code: "upstream_error" });
  expect(await read(false)).toBe(old);
  answering = Promise.withResolvers();
  const fresh = read(true);
  answering.resolve({ result: { tools: [tool(2)] } });
  expect(await fresh).toEqual([tool(2)]);
  expect(await read(false)).toBe(await fresh);
  expect(link.asked).toHaveLength(3);
});
