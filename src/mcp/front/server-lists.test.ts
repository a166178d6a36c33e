// Lists of servers as they are kept: for all who use a link, within bounds, and on nobody's account in particular.
import { expect, test } from "bun:test";
import { serving, TestLink } from "../../../tests/support/tool-desk.ts";
import { heldBytes } from "../../base/bytes/held-bytes.ts";
import { systemClock } from "../../base/clock.ts";
import { ServerLists } from "./server-lists.ts";

const tool = (length: number) => ({ name: "look", description: "x".repeat(length), inputSchema: { type: "object" } });

test("a list is asked for as nobody in particular, so that whoever asks first neither spoils it for others nor is asked back", async () => {
  const link = new TestLink(serving([tool(1)], () => ({ result: {} })));
  const lists = new ServerLists(systemClock);
  const [first, second] = [lists.of(link, "tools"), lists.of(link, "tools")];
  expect(await first).toBe(await second);
  expect(link.exchanges).toHaveLength(1);
  const { holder, clientCapabilities, notified, asked } = link.exchanges[0] ?? { holder: undefined };
  expect([holder, clientCapabilities, notified, asked]).toEqual([heldBytes.bounded, undefined, undefined, undefined]);
});

test("a list of more than 8 MiB is refused, however it is cut into pages", async () => {
  const page = { tools: [tool(1_000_000)] };
  const link = new TestLink((_, { cursor = "0" }) => ({ result: { ...page, nextCursor: String(Number(cursor) + 1) } }));
  await expect(new ServerLists(systemClock).of(link, "tools")).rejects.toMatchObject({
    code: "upstream_error",
    detail: "tools/list: more than 8388608 characters",
  });
  expect(link.asked).toHaveLength(9);
});

test("all lists that are kept have 64 MiB at most: those that were read last, each of them until it has changed", async () => {
  const lists = new ServerLists(systemClock);
  const before = heldBytes.byKind.cache;
  const links = Array.from({ length: 20 }, () => new TestLink(serving([tool(6_000_000)], () => ({ result: {} }))));
  for (const link of links) await lists.of(link, "tools");
  expect(heldBytes.byKind.cache - before).toBeWithin(60_000_000, 64 * 1024 * 1024);
  for (const link of links.slice(-10)) await lists.of(link, "tools");
  expect(links.map(({ asked }) => asked.length)).toEqual(links.map(() => 1));
  for (const link of links) link.changed("notifications/tools/list_changed");
  expect(heldBytes.byKind.cache).toBe(before);
});
