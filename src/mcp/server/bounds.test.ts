// Bounds on input of clients that is kept, or that costs more than its length.
import { describe, expect, test } from "bun:test";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { principalFor } from "../../../tests/support/principal.ts";
import { handlerFor, mcpServerFor, requestFrom, serving, TestLink } from "../../../tests/support/tool-desk.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import type { ClientCall } from "./client-call.ts";
import { Subscriber } from "./subscriptions.ts";

function callFrom(changes: Partial<ClientCall> = {}): ClientCall {
  return {
    ...requestFrom(principalFor()),
    ...{ capabilities: {}, isAskable: true, cancellation: new Cancellation(), notify: () => {} },
    ask: () => Promise.reject(new Error("nobody is there")),
    ...changes,
  };
}

const tool = (name: string, more: JsonObject = {}) => ({ name, inputSchema: { type: "object" }, ...more });

test("the address of a resource may have 8,192 characters: sessions and connections keep it for as long as they last", async () => {
  const link = new TestLink(serving([], () => ({ result: {} })));
  const { handler } = handlerFor([[mcpServerFor("one"), link]]);
  const subscribe = (length: number) =>
    handler.answer("resources/subscribe", { uri: "note:".padEnd(length, "x") }, callFrom({ only: "one" }));
  expect(await subscribe(8_192)).toEqual({});
  await expect(subscribe(8_193)).rejects.toThrow("uri must be a text of at most 8192 characters.");
});

test("a search of many words is refused, and one of many tools takes no time that others would miss", async () => {
  const description = Array.from({ length: 20_000 }, (_, i) => `word${i}`).join(" ");
  const tools = Array.from({ length: 200 }, (_, i) => tool(`thing_${i}`, { description }));
  const { handler } = handlerFor([[mcpServerFor("one"), new TestLink(serving(tools, () => ({ result: {} })))]]);
  const search = (query: string) =>
    handler.answer("tools/call", { name: "search_tools", arguments: { query } }, callFrom());
  const words = (most: number) => Array.from({ length: most }, (_, i) => `zz${i}`).join(" ");
  await expect(search(words(100_000))).rejects.toThrow("query must be some words, of at most 1000 characters.");
  const before = performance.now();
  await search(words(150));
  expect(performance.now() - before).toBeLessThan(1_000);
});

describe("a server of a later revision that asks back again and again", () => {
  /** Returns how many requests the client received until the call failed, and the error. */
  async function asked(entries: number, tookMs: number) {
    const one = { method: "elicitation/create", params: { message: "Who?" } };
    const inputRequests = Object.fromEntries(Array.from({ length: entries }, (_, i) => [`ask_${i}`, one]));
    const link = new TestLink(
      serving([tool("ask")], () => ({ result: { resultType: "input_required", inputRequests } })),
    );
    const clock = manualClock();
    const { handler } = handlerFor([[mcpServerFor("one"), link]], { clock });
    let count = 0;
    const ask = async () => {
      count++;
      clock.advance(tookMs);
      return { action: "accept", content: {} };
    };
    const call = callFrom({ capabilities: { elicitation: {} }, ask });
    const error = await handler.answer("tools/call", { name: "one_ask" }, call).catch(({ message }: Error) => message);
    return { count, error };
  }

  test("does so 256 times in one call at most, at once or one after the other", async () => {
    for (const entries of [1, 100, 1_000]) {
      const { count, error } = await asked(entries, 0);
      expect(error).toContain("asked back more than 256 times");
      expect(count).toBeLessThanOrEqual(256);
    }
  });

  test("asks nobody any more once the call has lasted as long as one may", async () => {
    for (const entries of [1, 100]) {
      const { count, error } = await asked(entries, 240_000);
      expect(error).toContain("within 600000 ms");
      expect(count).toBe(3);
    }
  });
});

test("a method that looks like a member of any object is none", async () => {
  const { handler } = handlerFor([]);
  for (const method of ["constructor", "__proto__", "toString"]) {
    await expect(handler.answer(method, {}, callFrom())).rejects.toThrow(`Method not found: ${method}`);
  }
});

test("a cursor is one that was given, and nothing that reads as one", async () => {
  const tools = Array.from({ length: 1_500 }, (_, i) => tool(`thing_${i}`));
  const { handler } = handlerFor([[mcpServerFor("one"), new TestLink(serving(tools, () => ({ result: {} })))]]);
  const list = (cursor: unknown) => handler.answer("tools/list", { cursor }, callFrom({ only: "one" }));
  expect((await list("1000"))["tools"]).toHaveLength(500);
  for (const cursor of ["", " 1", "0x10", "1e3", "-1", "1.5", "1501", null, [], ["1"], 1_000, true, {}]) {
    await expect(list(cursor)).rejects.toThrow("cursor is none that this gateway gave.");
  }
});

test("the tools of a server that is called search or call are not taken for those of the gateway", async () => {
  const called: string[] = [];
  const links = ["search", "call"].map((name) => {
    const answering = serving([tool("tools"), tool("tool")], (_method, params) => {
      called.push(`${name} ${params["name"]}`);
      return { result: { content: [] } };
    });
    return [mcpServerFor(name), new TestLink(answering)] as const;
  });
  const { handler } = handlerFor(links);
  const { tools } = (await handler.answer("tools/list", {}, callFrom())) as { tools: { name: string }[] };
  for (const { name } of tools) await handler.answer("tools/call", { name }, callFrom());
  expect(called).toEqual(["call tools", "call tool", "search tools", "search tool"]);
});

test("of what a server tells of a resource its address alone waits for clients, and none that nobody could ask for", async () => {
  const link = new TestLink(serving([], () => ({ result: {} })));
  const told: string[] = [];
  const follower = new Subscriber(
    requestFrom(principalFor()),
    () => () => {},
    (method, params) => told.push(JSON.stringify([method, params])),
  );
  follower.follow("one", link);
  follower.add("one", "note:");
  const updated = "notifications/resources/updated";
  link.changed(updated, { uri: "note:".padEnd(100_000, "x") });
  link.changed(updated, { uri: "note:a", title: "x".repeat(1_000_000) });
  while (told.length === 0) await Bun.sleep(5);
  expect(told).toEqual([JSON.stringify([updated, { uri: "headrace+one:note:a" }])]);
  follower.end();
});
