// Memory and slots that sessions hold, and their release whatever the clients do.
import { expect, jest, test } from "bun:test";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { accountFor, principalFor } from "../../../tests/support/principal.ts";
import { handlerFor, mcpServerFor, requestFrom, serving, TestLink } from "../../../tests/support/tool-desk.ts";
import { AccountMemory, BufferedBytes } from "../../base/bytes/buffered-bytes.ts";
import { Cancellation } from "../../base/cancellation.ts";
import { systemClock } from "../../base/clock.ts";
import type { Principal } from "../../domain/principal.ts";
import type { JsonObject } from "../../domain/tools/client-session.ts";
import type { ClientRequest } from "./client-call.ts";
import { Endpoint } from "./endpoint.ts";
import type { RequestHandler } from "./request-handler.ts";

const headers = { accept: "application/json, text/event-stream", "content-type": "application/json" };
const initialize = {
  ...{ jsonrpc: "2.0", id: 0, method: "initialize" },
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } },
};

const listen = {
  ...{ jsonrpc: "2.0", id: 0, method: "subscriptions/listen" },
  params: {
    notifications: { toolsListChanged: true },
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  },
};
const listenHeaders = { ...headers, "mcp-protocol-version": "2026-07-28", "mcp-method": "subscriptions/listen" };

function endpointOf(handler: RequestHandler) {
  const endpoint = new Endpoint(handler, systemClock, async () => principalFor());
  const send = async (
    body: JsonObject,
    principal?: Principal,
    session?: string,
    changes: Partial<ClientRequest> = {},
  ): Promise<Response> => {
    const sent = { ...headers, ...(session !== undefined && { "mcp-session-id": session }) };
    const request = new Request("http://gateway.test/mcp", {
      method: "POST",
      headers: sent,
      body: JSON.stringify(body),
    });
    return await endpoint.answer(request, requestFrom(principal, changes), body);
  };
  return { endpoint, send, [Symbol.asyncDispose]: () => endpoint.close() };
}

test("ends the stream of a cancelled request, and frees its slot", async () => {
  const slow = serving([{ name: "slow", inputSchema: { type: "object" } }], async (_method, _params, exchange) => {
    await new Promise<void>((resolve) => exchange.cancellation.onCancel(resolve));
    return { result: { content: [] } };
  });
  const { handler } = handlerFor([[mcpServerFor("one"), new TestLink(slow)]]);
  await using one = endpointOf(handler);
  const begun = await one.send(initialize);
  await begun.text();
  const session = begun.headers.get("mcp-session-id") ?? "";
  // A session may have at most 64 requests under way.
  for (let id = 1; id <= 70; id++) {
    const call = { jsonrpc: "2.0", id, method: "tools/call", params: { name: "one_slow", arguments: {} } };
    const answer = await one.send(call, undefined, session);
    expect(answer.status).toBe(200);
    const cancelled = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } };
    expect((await one.send(cancelled, undefined, session)).status).toBe(202);
    expect(await answer.text()).toContain(`"id":${id}`);
  }
});

// long-lived: mcpSession.key
test("bounds a key's sessions to 32, even if many begin at once", async () => {
  const opened = Promise.withResolvers<void>();
  const link = new TestLink(serving([], () => ({ result: {} })));
  const open = async () => {
    await opened.promise;
    return link;
  };
  const { handler } = handlerFor([[mcpServerFor("one"), link]], { links: { open } });
  await using one = endpointOf(handler);
  const all = Array.from({ length: 100 }, async () => await (await one.send(initialize)).text());
  opened.resolve();
  await Promise.all(all);
  expect(one.endpoint.sessions).toBe(32);
});

// long-lived: mcpSession.total
test("ends no session of another account when an account with many keys reaches the maximum", async () => {
  const { handler } = handlerFor([]);
  await using one = endpointOf(handler);
  const [hog, other] = [accountFor({ id: "acct_hog" }), accountFor({ id: "acct_other" })];
  const quiet = principalFor({ account: other });
  const begun = await one.send(initialize, quiet);
  await begun.text();
  const session = begun.headers.get("mcp-session-id") ?? "";
  const [own] = quiet.keys;
  for (let i = 0; i < 4_200; i++) {
    const keys = [{ ...own, id: `key_${i >> 5}` }] as const;
    await (await one.send(initialize, principalFor({ account: hog, keys }))).text();
  }
  expect(one.endpoint.sessions).toBeLessThanOrEqual(4_096);
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
  expect((await one.send(list, quiet, session)).status).toBe(200);
  expect((await one.send(initialize, quiet)).status).toBe(200);
});

// long-lived: mcpStream.key, mcpStream.account
test("bounds streams of 2026-07-28 per owner and account, which leaves room for others", async () => {
  const { handler } = handlerFor([]);
  await using one = endpointOf(handler);
  const begin = async (principal: Principal) => {
    const init = { method: "POST", headers: listenHeaders, body: JSON.stringify(listen) };
    return await one.endpoint.answer(new Request("http://gateway.test/mcp", init), requestFrom(principal), listen);
  };
  const [own] = principalFor().keys;
  const principalOf = (id: string, i: number) =>
    principalFor({ account: accountFor({ id }), keys: [{ ...own, id: `key_${i}` }] });
  const hog = Array.from({ length: 1_200 }, (_, i) => principalOf("acct_hog", i >> 5));
  const statuses: number[] = [];
  const answers = await Promise.all([...hog, ...hog.slice(0, 1)].map(begin));
  for (const { status } of answers) statuses.push(status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(1_024);
  expect(statuses.at(-1)).toBe(429);
  const others = await Promise.all(
    Array.from({ length: 33 }, async () => await begin(principalOf("acct_other", 9_999))),
  );
  expect(others.map(({ status }) => status)).toEqual([...Array.from({ length: 32 }, () => 200), 429]);
  await others[0]?.body?.cancel();
  expect((await begin(principalOf("acct_other", 9_999))).status).toBe(200);
});

// long-lived: mcpStream.total
test("bounds listening streams of all accounts to 4,096", async () => {
  const { handler } = handlerFor([]);
  await using one = endpointOf(handler);
  const [own] = principalFor().keys;
  const begin = async (i: number) => {
    const principal = principalFor({
      account: accountFor({ id: `acct_${i >> 10}` }),
      keys: [{ ...own, id: `key_${i >> 5}` }],
    });
    const init = { method: "POST", headers: listenHeaders, body: JSON.stringify(listen) };
    return await one.endpoint.answer(new Request("http://gateway.test/mcp", init), requestFrom(principal), listen);
  };
  const answers = await Promise.all(Array.from({ length: 4_097 }, (_, i) => begin(i)));
  expect(answers.filter(({ status }) => status === 200)).toHaveLength(4_096);
  expect(answers.at(-1)?.status).toBe(429);
});

// long-lived: mcpSession.server, mcpStream.server
test("ends sessions and listening streams when the server stops", async () => {
  const { handler } = handlerFor([]);
  const one = endpointOf(handler);
  const begun = await one.send(initialize);
  await begun.text();
  const init = { method: "POST", headers: listenHeaders, body: JSON.stringify(listen) };
  const request = new Request("http://gateway.test/mcp", init);
  const stream = await one.endpoint.answer(request, requestFrom(principalFor()), listen);
  const read = stream.text().catch(() => "broken off");
  await one.endpoint.close();
  await read;
  expect(one.endpoint.sessions).toBe(0);
});

// long-lived: mcpSession.idle
test("ends a session after ten idle minutes, and keeps one in use", async () => {
  const clock = manualClock();
  const { handler } = handlerFor([]);
  jest.useFakeTimers();
  try {
    const endpoint = new Endpoint(handler, clock, async () => principalFor());
    const send = async (body: JsonObject, session?: string) => {
      const sent = { ...headers, ...(session !== undefined && { "mcp-session-id": session }) };
      const request = new Request("http://gateway.test/mcp", {
        method: "POST",
        headers: sent,
        body: JSON.stringify(body),
      });
      return await endpoint.answer(request, requestFrom(principalFor()), body);
    };
    const [idle, used] = [await send(initialize), await send(initialize)];
    await Promise.all([idle.text(), used.text()]);
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    const use = async (of: Response) => {
      const answer = await send(list, of.headers.get("mcp-session-id") ?? "");
      await answer.text();
      return answer.status;
    };
    clock.advance(599_000);
    jest.advanceTimersByTime(60_000);
    expect(endpoint.sessions).toBe(2);
    expect(await use(used)).toBe(200);
    clock.advance(2_000);
    jest.advanceTimersByTime(60_000);
    expect([await use(idle), await use(used)]).toEqual([404, 200]);
    await endpoint.close();
  } finally {
    jest.useRealTimers();
  }
});

test("counts a call's parameters for its key until the server has answered, even if the client disconnected", async () => {
  const worked = Promise.withResolvers<{ result: JsonObject }>();
  const link = new TestLink(serving([{ name: "slow", inputSchema: { type: "object" } }], () => worked.promise));
  const { handler, ended } = handlerFor([[mcpServerFor("one"), link]]);
  await using one = endpointOf(handler);
  const begun = await one.send(initialize);
  await begun.text();
  const memoryAccount = new BufferedBytes(1e9).memoryAccount(new AccountMemory());
  const clientGone = new Cancellation();
  const params = { name: "one_slow", arguments: { text: "x".repeat(100_000) } };
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params };
  const answer = await one.send(call, undefined, begun.headers.get("mcp-session-id") ?? "", {
    memoryAccount,
    clientGone: clientGone,
  });
  while (!link.asked.some(({ method }) => method === "tools/call")) await Bun.sleep(1);
  const before = memoryAccount.total;
  clientGone.cancel();
  await answer.body?.cancel();
  expect(memoryAccount.total - before).toBeWithin(100_000, 101_000);
  worked.resolve({ result: { content: [] } });
  while (ended.length === 0) await Bun.sleep(1);
  await Bun.sleep(1);
  expect(memoryAccount.total).toBe(before);
});
