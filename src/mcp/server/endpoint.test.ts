// Several servers behind one address, tested with the SDK's client for every revision.
import { describe, expect, test } from "bun:test";
import { Client, PROTOCOL_VERSION_META_KEY, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { principalFor } from "../../../tests/support/principal.ts";
import { handlerFor, mcpServerFor, requestFrom, serving, TestLink } from "../../../tests/support/tool-desk.ts";
import { systemClock } from "../../base/clock.ts";
import { AccountMissing, type JsonObject } from "../../domain/tools/client-session.ts";
import type { ClientRequest } from "./client-call.ts";
import { Endpoint } from "./endpoint.ts";
import type { RequestHandler } from "./request-handler.ts";

const anything = { "~standard": { version: 1, vendor: "test", validate: (value: unknown) => ({ value }) } } as const;
const tool = (name: string, more: JsonObject = {}) => ({ name, inputSchema: { type: "object" }, ...more });
const text = (said: string) => ({ result: { content: [{ type: "text", text: said }] } });

async function clientOf(
  handler: RequestHandler,
  isLegacy: boolean,
  options: { changes?: Partial<ClientRequest>; capabilities?: JsonObject } = {},
) {
  const endpoint = new Endpoint(handler, systemClock, async () => principalFor());
  const { changes = {}, capabilities = {} } = options;
  const fetchFromEndpoint = async (url: string | URL, init?: RequestInit): Promise<Response> => {
    const request = new Request(url, init);
    const body: unknown = request.method === "POST" ? JSON.parse(await request.clone().text()) : undefined;
    return await endpoint.answer(request, requestFrom(changes.principal, changes), body);
  };
  const client = new Client(
    { name: "test", version: "1" },
    { capabilities, versionNegotiation: { mode: isLegacy ? "legacy" : { pin: "2026-07-28" } } },
  );
  const transport = new StreamableHTTPClientTransport(new URL("http://gateway.test/mcp"), { fetch: fetchFromEndpoint });
  await client.connect(transport);
  return {
    client,
    endpoint,
    transport,
    ask: async (method: string, params: JsonObject = {}) =>
      (await client.request({ method, params: { ...params } }, anything)) as Record<string, unknown>,
    async [Symbol.asyncDispose]() {
      await client.close();
      await endpoint.close();
    },
  };
}

describe.each([
  ["2025-11-25", true],
  ["2026-07-28", false],
] as const)("a client of %s", (_, isLegacy) => {
  test("lists the tools of all servers with their names as prefix, and calls them by their own names", async () => {
    const call = (name: string) =>
      serving([tool("look"), tool("a.b")], (_method, params) => text(`${name} ${params["name"]}`));
    const links = ["one", "two"].map((name) => [mcpServerFor(name), new TestLink(call(name))] as const);
    const { handler, ended } = handlerFor(links);
    await using one = await clientOf(handler, isLegacy);
    const { tools } = (await one.ask("tools/list")) as { tools: { name: string }[] };
    const names = tools.map(({ name }) => name);
    expect(names[0]).toBe("one_look");
    expect(names[1]).toMatch(/^one_a_b_[0-9a-f]{6}$/);
    expect(names[2]).toBe("two_look");
    expect(await one.ask("tools/call", { name: names[3], arguments: {} })).toMatchObject({
      content: [{ type: "text", text: "two a.b" }],
    });
    expect(ended).toEqual(["two tools/call a.b completed  false"]);
  });

  test("reads a list anew only for its first page if all requests say no-cache", async () => {
    let now = 0;
    const many = Array.from({ length: 1_001 }, (_item, i) => tool(`look_${i}`));
    const link = new TestLink(serving(many, () => text("seen")));
    const { handler } = handlerFor([[mcpServerFor("one"), link]], {
      clock: { ...systemClock, monotonicMs: () => now },
    });
    await using one = await clientOf(handler, isLegacy, { changes: { only: "one", isFresh: true } });
    const lists = () => link.asked.filter(({ method }) => method === "tools/list").length;
    const { nextCursor } = await one.ask("tools/list");
    for (let i = 0; i < 3; i++) {
      now += 1_050;
      await one.ask("tools/call", { name: "look_0", arguments: {} });
    }
    await one.ask("tools/list", { cursor: nextCursor });
    expect(lists()).toBe(1);
    await one.ask("tools/list");
    expect(lists()).toBe(2);
  });

  test("lists and calls only the tools that all lists of a principal permit", async () => {
    const links = ["one", "two", "three"].map(
      (name) => [mcpServerFor(name), new TestLink(serving([tool("look"), tool("drop")], () => text(name)))] as const,
    );
    const { handler, ended } = handlerFor(links);
    const principal = principalFor({
      tools: {
        lists: [
          ["one", "two/look"],
          ["*/look", "three"],
        ],
      },
    });
    await using one = await clientOf(handler, isLegacy, { changes: { principal } });
    const { tools } = (await one.ask("tools/list")) as { tools: { name: string }[] };
    expect(tools.map(({ name }) => name)).toEqual(["one_look", "two_look"]);
    expect(await one.ask("tools/call", { name: "two_look", arguments: {} })).toMatchObject(text("two").result);
    for (const name of ["one_drop", "two_drop", "three_look"]) {
      await expect(one.ask("tools/call", { name, arguments: {} })).rejects.toThrow();
    }
    expect(ended).toEqual(["two tools/call look completed  false"]);
    expect(links[2]?.[1].asked).toEqual([]);
  });

  test("passes unknown content of servers on unchanged", async () => {
    const odd = { content: [{ type: "hologram", depth: { x: 1 } }], structuredContent: { a: [1] }, extra: { b: null } };
    const link = new TestLink(serving([tool("look", { "x-odd": 1 })], () => ({ result: odd })));
    const { handler } = handlerFor([[mcpServerFor("one"), link]]);
    await using one = await clientOf(handler, isLegacy, { changes: { only: "one" } });
    expect(await one.ask("tools/list")).toMatchObject({ tools: [{ name: "look", "x-odd": 1 }] });
    if (isLegacy) expect(await one.ask("tools/call", { name: "look" })).toMatchObject(odd);
  });

  test("hides servers that the key may not use, with the same error as for missing ones", async () => {
    const link = new TestLink(serving([tool("look"), tool("write")], () => text("done")));
    const { handler } = handlerFor([[mcpServerFor("one"), link]]);
    const principal = principalFor({ tools: { lists: [["one/look"]] } });
    await using one = await clientOf(handler, isLegacy, { changes: { principal } });
    expect(await one.ask("tools/list")).toMatchObject({ tools: [{ name: "one_look" }] });
    const faults: string[] = [];
    for (const name of ["one_write", "one_nothing", "none_look"]) {
      await one.ask("tools/call", { name }).catch((error) => faults.push(`${error.code} ${error.message}`));
    }
    expect(faults.map((fault) => fault.replace(/one_write|one_nothing|none_look/, "x"))).toEqual(
      Array.from({ length: 3 }, () => faults[0]?.replace("one_write", "x") ?? "none"),
    );
    expect(link.asked.filter(({ method }) => method === "tools/call")).toEqual([]);
  });

  test("lists one tool with the connect URL for a server until the user has connected an account", async () => {
    const credentials = { kind: "person", issuer: null, clientId: null, clientSecret: null, scopes: null } as const;
    const crm = mcpServerFor("crm", { credentials });
    const link = new TestLink(serving([tool("search")], () => text("found")));
    let isConnected = false;
    const open = async () => {
      if (isConnected) return link;
      throw new AccountMissing("crm", "https://gateway.test/tools");
    };
    const { handler, ended } = handlerFor([[crm, link]], { links: { open } });
    await using one = await clientOf(handler, isLegacy);
    const names = async () =>
      ((await one.ask("tools/list")) as { tools: { name: string }[] }).tools.map(({ name }) => name);
    expect(await names()).toEqual(["crm_connect_account"]);
    expect(await one.ask("prompts/list")).toMatchObject({ prompts: [] });
    // Calls to a tool listed earlier also return the message as a tool result, which models read.
    for (const name of ["crm_connect_account", "crm_search"]) {
      const { content, isError } = await one.ask("tools/call", { name });
      expect([JSON.stringify(content), isError]).toEqual([
        expect.stringContaining("at https://gateway.test/tools"),
        true,
      ]);
    }
    expect([link.asked, ended]).toEqual([[], []]);
    isConnected = true;
    expect(await one.ask("tools/call", { name: "crm_connect_account" })).toMatchObject({
      content: [{ text: 'The account of "crm" is connected. List the tools anew to use it.' }],
    });
    expect(await names()).toEqual(["crm_search"]);
    expect(await one.ask("tools/call", { name: "crm_search" })).toMatchObject({ content: [{ text: "found" }] });
  });

  test("reports progress with the client's token, and ends the call when the client disconnects", async () => {
    let isLeft = false;
    const link = new TestLink(
      serving([tool("slow")], async (_method, _params, { notified, cancellation }) => {
        notified?.("notifications/progress", { progress: 1, total: 2 });
        await new Promise<void>((resolve) => cancellation.onCancel(resolve));
        isLeft = true;
        return text("too late");
      }),
    );
    const { handler, ended } = handlerFor([[mcpServerFor("one"), link]]);
    await using one = await clientOf(handler, isLegacy);
    const leaving = new AbortController();
    const progress = Promise.withResolvers<unknown>();
    const asked = one.client.request({ method: "tools/call", params: { name: "one_slow" } }, anything, {
      signal: leaving.signal,
      onprogress: (reported) => progress.resolve(reported),
    });
    expect(await progress.promise).toMatchObject({ progress: 1, total: 2 });
    leaving.abort();
    await asked.catch(() => {});
    while (!isLeft) await Bun.sleep(5);
    while (ended.length === 0) await Bun.sleep(5);
    expect(ended[0]).toStartWith("one tools/call slow cancelled");
  });

  test.each([true, false])(
    "passes server requests to the client and its answers back (earlier revision: %p)",
    async (isEarlier) => {
      const form = { message: "Who?", requestedSchema: { type: "object", properties: {} } };
      const link = new TestLink(
        serving([tool("ask")], async (_method, params, { asked }) => {
          if (isEarlier) {
            const answer = await asked?.("elicitation/create", form);
            return text(`told ${JSON.stringify(answer)}`);
          }
          const { inputResponses, requestState } = params;
          if (inputResponses === undefined) {
            const inputRequests = { who: { method: "elicitation/create", params: form } };
            return { result: { resultType: "input_required", inputRequests, requestState: "s1" } };
          }
          return text(`told ${JSON.stringify((inputResponses as JsonObject)["who"])} ${requestState}`);
        }),
        { isLegacy: isEarlier },
      );
      const { handler } = handlerFor([[mcpServerFor("one"), link]]);
      await using one = await clientOf(handler, isLegacy, { capabilities: { elicitation: { form: {} } } });
      one.client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: { name: "Ada" } }));
      const answer = (await one.client.request({ method: "tools/call", params: { name: "one_ask" } }, anything)) as {
        content: { text: string }[];
      };
      expect(answer.content[0]?.text).toContain('"name":"Ada"');
    },
  );
});

test("notifies a session of changed lists and its own resources under the gateway's names, until it ends", async () => {
  const answering = serving([tool("look")], () => ({ result: {} }));
  const link = new TestLink(answering);
  const { handler } = handlerFor([[mcpServerFor("one"), link]]);
  await using one = await clientOf(handler, true);
  const received: string[] = [];
  one.client.fallbackNotificationHandler = async ({ method, params }) => {
    received.push(`${method} ${params?.["uri"] ?? ""}`);
  };
  await one.ask("tools/list");
  await one.ask("resources/subscribe", { uri: "headrace+one:note://a" });
  await one.ask("resources/subscribe", { uri: "headrace+one:note://a" });
  // The stream of the session may open a moment after its first requests.
  while (!received.includes("notifications/tools/list_changed ")) {
    link.changed("notifications/tools/list_changed");
    await Bun.sleep(60);
  }
  link.changed("notifications/resources/updated", { uri: "note://b" });
  link.changed("notifications/resources/updated", { uri: "note://a" });
  while (!received.some((line) => line.includes("resources"))) await Bun.sleep(5);
  expect(received.filter((line) => line.includes("resources"))).toEqual([
    "notifications/resources/updated headrace+one:note://a",
  ]);
  const before = link.subscribers;
  await one.transport.terminateSession();
  expect(link.subscribers).toBe(before - 1);
  expect(link.asked.map(({ method }) => method)).toContain("resources/unsubscribe");
});

test("notifies a stream of 2026-07-28 only of servers that its key may use, until its client disconnects", async () => {
  const link = new TestLink(serving([tool("look")], () => ({ result: {} })));
  const other = new TestLink(serving([tool("look")], () => ({ result: {} })));
  const { handler } = handlerFor([
    [mcpServerFor("one"), link],
    [mcpServerFor("two"), other],
  ]);
  const principal = principalFor({ tools: { lists: [["one"]] } });
  await using one = await clientOf(handler, false, { changes: { principal } });
  const received: string[] = [];
  one.client.fallbackNotificationHandler = async ({ method }) => {
    received.push(method);
  };
  const subscription = await one.client.listen({
    toolsListChanged: true,
    resourceSubscriptions: ["headrace+one:note://a"],
  });
  while (!link.asked.some(({ method }) => method === "resources/subscribe")) await Bun.sleep(5);
  // Headers of the client, such as a cookie or a key, are for the gateway alone.
  expect(link.exchanges.map(({ headers }) => headers)).toEqual(link.exchanges.map(() => undefined));
  expect(other.subscribers).toBe(0);
  link.changed("notifications/tools/list_changed");
  link.changed("notifications/resources/updated", { uri: "note://a" });
  while (received.length < 2) await Bun.sleep(5);
  expect(received.toSorted()).toEqual(["notifications/resources/updated", "notifications/tools/list_changed"]);
  await subscription.close();
  while (link.subscribers > 0) await Bun.sleep(5);
});

test("searches many tools, and calls one that was found", async () => {
  const tools = Array.from({ length: 60 }, (_, i) => tool(`thing_${i}`, { description: `Does thing number ${i}.` }));
  tools.push(tool("createInvoice", { description: "Writes a bill." }));
  const link = new TestLink(serving(tools, (_method, params) => text(`called ${params["name"]}`)));
  const { handler } = handlerFor([[mcpServerFor("one"), link]]);
  await using one = await clientOf(handler, false);
  expect(await one.ask("tools/list")).toMatchObject({ tools: [{ name: "search_tools" }, { name: "call_tool" }] });
  const found = await one.ask("tools/call", { name: "search_tools", arguments: { query: "invoice" } });
  expect(found).toMatchObject({ structuredContent: { tools: [{ name: "one_createInvoice" }] } });
  const called = await one.ask("tools/call", { name: "call_tool", arguments: { name: "one_createInvoice" } });
  expect(called).toMatchObject({ content: [{ text: "called createInvoice" }] });
  await using all = await clientOf(handler, false, { changes: { listing: "all" } });
  expect(((await all.ask("tools/list")) as { tools: unknown[] }).tools).toHaveLength(61);
});

test("lists the tools of the other servers if one server fails", async () => {
  const good = new TestLink(serving([tool("look")], () => text("")));
  const bad = new TestLink(() => Promise.reject(new Error("gone")));
  const { handler } = handlerFor([
    [mcpServerFor("bad"), bad],
    [mcpServerFor("good"), good],
  ]);
  await using one = await clientOf(handler, false);
  expect(await one.ask("tools/list")).toMatchObject({ tools: [{ name: "good_look" }] });
});

test("opens a session for an earlier-revision client that states its revision in its first message", async () => {
  const { handler } = handlerFor([[mcpServerFor("one"), new TestLink(serving([tool("look")], () => text("")))]]);
  await using one = await clientOf(handler, true);
  const _meta = { [PROTOCOL_VERSION_META_KEY]: "2025-11-25" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "old", version: "1" }, _meta };
  const body = { jsonrpc: "2.0", id: 0, method: "initialize", params };
  const headers = { accept: "application/json, text/event-stream", "content-type": "application/json" };
  const request = new Request("http://gateway.test/mcp", { method: "POST", headers, body: JSON.stringify(body) });
  const answer = await one.endpoint.answer(request, requestFrom(), body);
  expect([answer.status, answer.headers.has("mcp-session-id")]).toEqual([200, true]);
  await answer.body?.cancel();
});

test("hides a session from another account, and keeps it after that account began 1,000 sessions", async () => {
  const link = new TestLink(serving([tool("look")], () => text("")));
  const { handler } = handlerFor([[mcpServerFor("one"), link]]);
  await using one = await clientOf(handler, true);
  const session = one.transport.sessionId ?? "";
  const other = principalFor({ account: { ...principalFor().account, id: "acct_2" } });
  const ask = (principal: typeof other, headers: Record<string, string>, body: unknown) =>
    one.endpoint.answer(
      new Request("http://gateway.test/mcp", {
        method: "POST",
        headers: { accept: "application/json, text/event-stream", "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      }),
      requestFrom(principal),
      body,
    );
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  expect((await ask(other, { "mcp-session-id": session, "mcp-protocol-version": "2025-11-25" }, list)).status).toBe(
    404,
  );
  const clientInfo = { name: "gone", version: "1" };
  const begin = {
    jsonrpc: "2.0",
    id: 0,
    method: "initialize",
    params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo },
  };
  for (let i = 0; i < 1_000; i++) await (await ask(other, {}, begin)).text();
  expect(one.endpoint.sessions).toBeLessThanOrEqual(33);
  expect(await one.ask("tools/list")).toMatchObject({ tools: [{ name: "one_look" }] });
});
