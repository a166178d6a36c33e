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

test("accepts resource addresses of up to 8,192 characters", async () => {
  const link = new TestLink(serving([], () => ({ result: {} })));
  const { handler } = handlerFor([[mcpServerFor("one"), link]]);
  const subscribe = (length: number) =>
    handler.answer("resources/subscribe", { uri: "note:".padEnd(length, "x") }, callFrom({ only: "one" }));
  expect(await subscribe(8_192)).toEqual({});
  await expect(subscribe(8_193)).rejects.toThrow("uri must be a text of at most 8192 characters.");
});

test("refuses a search of more than 1,000 characters, and searches many tools within a second", async () => {
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

describe("a later-revision server that requests input repeatedly", () => {
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

  test("fails a call whose server sends the client more than 256 requests, at once or in turn", async () => {
    for (const entries of [1, 100, 1_000]) {
      const { count, error } = await asked(entries, 0);
      expect(error).toContain("asked back more than 256 times");
      expect(count).toBeLessThanOrEqual(256);
    }
  });

  test("sends the client no more of a server's requests after the call's maximum duration", async () => {
    for (const entries of [1, 100]) {
      const { count, error } = await asked(entries, 240_000);
      expect(error).toContain("within 600000 ms");
      expect(count).toBe(3);
    }
  });
});

test("refuses a method that is named like a member of every object", async () => {
  const { handler } = handlerFor([]);
  for (const method of ["constructor", "__proto__", "toString"]) {
    await expect(handler.answer(method, {}, callFrom())).rejects.toThrow(`Method not found: ${method}`);
  }
});

test("refuses cursors that the gateway did not issue", async () => {
  const tools = Array.from({ length: 1_500 }, (_, i) => tool(`thing_${i}`));
  const { handler } = handlerFor([[mcpServerFor("one"), new TestLink(serving(tools, () => ({ result: {} })))]]);
  const list = (cursor: unknown) => handler.answer("tools/list", { cursor }, callFrom({ only: "one" }));
  expect((await list("1000"))["tools"]).toHaveLength(500);
  for (const cursor of ["", " 1", "0x10", "1e3", "-1", "1.5", "1501", null, [], ["1"], 1_000, true, {}]) {
    await expect(list(cursor)).rejects.toThrow("cursor is none that this gateway gave.");
  }
});

test("distinguishes server tools named search or call from those of the gateway", async () => {
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

test("forwards only the address of a changed resource, and drops addresses that are too long", async () => {
  const link = new TestLink(serving([], () => ({ result: {} })));
  const received: string[] = [];
  const subscriber = new Subscriber(
    requestFrom(principalFor()),
    () => () => {},
    (method, params) => received.push(JSON.stringify([method, params])),
  );
  subscriber.attach("one", link);
  subscriber.add("one", "note:");
  const updated = "notifications/resources/updated";
  link.changed(updated, { uri: "note:".padEnd(100_000, "x") });
  link.changed(updated, { uri: "note:a", title: "x".repeat(1_000_000) });
  while (received.length === 0) await Bun.sleep(5);
  expect(received).toEqual([JSON.stringify([updated, { uri: "headrace+one:note:a" }])]);
  subscriber.end();
});
