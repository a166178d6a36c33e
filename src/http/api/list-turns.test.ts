// Tests that an account reads one report, list or statement at a time, and accounts take turns.
import { expect, test } from "bun:test";
import { exchangeFor, incoming, responseOf } from "../../../tests/support/exchange.ts";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { accountFor, principalFor } from "../../../tests/support/principal.ts";
import type { StoredFile } from "../../domain/files/stored-file.ts";
import { noSums } from "../../policy/records/statements.ts";
import type { ScopedRoute } from "../exchange/route.ts";
import { type FileRouteDeps, fileRoutes } from "./files/file-routes.ts";
import { type KeyRouteDeps, keyRoutes } from "./key-routes.ts";
import { refusalRoutes } from "./usage/refusal-routes.ts";
import { requestRoutes } from "./usage/request-routes.ts";
import { statementRoutes } from "./usage/statement-routes.ts";
import { usageRoutes } from "./usage/usage-routes.ts";

/** Returns the maximum of concurrent reads during 4 requests of one account and 2 of another. */
async function mostAtOnce(routeOf: (read: <Value>(value: Value) => Promise<Value>) => ScopedRoute, target: string) {
  let [running, most] = [0, 0];
  const route = routeOf(async (value) => {
    most = Math.max(most, ++running);
    await Bun.sleep(2);
    running--;
    return value;
  });
  const ask = async (id: string) => {
    const principal = principalFor({
      account: accountFor({ id }),
      scopes: new Set(["usage:read"]),
    });
    const answer = await responseOf(() => route.handle(exchangeFor(incoming({ target })), principal));
    return answer.status;
  };
  const accounts = ["acct_1", "acct_1", "acct_1", "acct_1", "acct_2", "acct_2"];
  expect(await Promise.all(accounts.map(ask))).toEqual(accounts.map(() => 200));
  return most;
}

const flush = async () => {};
const common = { clock: manualClock(1_790_000_000), requestLimits: () => ({ bodyBytes: 10_000, depth: 8 }) };
const never = async () => {
  throw new Error("The list asks for nothing else.");
};

function first(routes: ScopedRoute[]): ScopedRoute {
  const [route] = routes;
  if (!route) throw new Error("There is no route.");
  return route;
}

test("sums one usage report at a time for an account", async () => {
  const routeOf = (read: <Value>(value: Value) => Promise<Value>) =>
    first(
      usageRoutes({
        ...common,
        reports: { report: () => read([]) },
        ledger: { flush },
        keys: { findChainById: never },
      }),
    );
  expect(await mostAtOnce(routeOf, "/v1/usage")).toBe(1);
});

test("reads one page of requests at a time for an account", async () => {
  const routeOf = (read: <Value>(value: Value) => Promise<Value>) =>
    first(
      requestRoutes({
        ...common,
        requestHistory: { list: () => read({ requests: [], next: null }), find: never },
        ...{ ledger: { flush }, refusedRequests: { flush }, chatWriter: { flush }, toolContentWriter: { flush } },
        ...{ chats: { has: never }, toolContents: { find: never } },
      }),
    );
  expect(await mostAtOnce(routeOf, "/v1/requests")).toBe(1);
});

test("reads one list of refusals at a time for an account", async () => {
  const routeOf = (read: <Value>(value: Value) => Promise<Value>) =>
    first(refusalRoutes({ ...common, refusalStore: { list: () => read([]) }, refusalCounts: { flush } }));
  expect(await mostAtOnce(routeOf, "/v1/refusals")).toBe(1);
});

test("sums an account's statement before waiting statements of others, and bounds the queue", async () => {
  const order: string[] = [];
  const routes = statementRoutes({
    ...common,
    statements: {
      async read({ accountId }) {
        order.push(accountId);
        await Bun.sleep(1);
        return { lines: [], others: null, total: noSums(), overlaps: false };
      },
    },
    accounts: { findAccount: never, listAccounts: never },
    organizations: { findOrganization: never, listAccountsOf: never },
    summedLedger: { flush },
    installationUrl: () => "http://127.0.0.1:1",
    unpricedSince: 0,
    parties: { credentials: async () => new Map(), names: async () => ({}), people: async () => new Map() },
    apps: { findApp: never },
  });
  const ask = async (id: string) => {
    const principal = principalFor({ account: accountFor({ id }), scopes: new Set(["usage:read"]) });
    const target = "/v1/statement?month=2026-08";
    return (await responseOf(() => first(routes).handle(exchangeFor(incoming({ target })), principal))).status;
  };
  const many = Array.from({ length: 65 }, () => ask("acct_1"));
  expect(await ask("acct_2")).toBe(200);
  expect(order.indexOf("acct_2")).toBeLessThanOrEqual(2);
  expect((await Promise.all(many)).toSorted()).toEqual([...Array.from({ length: 64 }, () => 200), 429]);
});

test("reads one list of keys at a time", async () => {
  const routeOf = (read: <Value>(value: Value) => Promise<Value>) => {
    const keys = { listKeys: () => read([]) };
    const routes = keyRoutes(Object.assign({} as KeyRouteDeps, common, { keys }));
    return first(routes.filter(({ doc }) => doc.operationId === "listKeys"));
  };
  expect(await mostAtOnce(routeOf, "/v1/keys")).toBe(1);
});

function filesRoute(list: FileRouteDeps["files"]["list"]): ScopedRoute {
  const routes = fileRoutes(Object.assign({} as FileRouteDeps, common, { files: { list } }));
  return first(routes.filter(({ doc }) => doc.operationId === "listFiles"));
}

test("reads one list of files at a time", async () => {
  expect(await mostAtOnce((read) => filesRoute(() => read([])), "/v1/files")).toBe(1);
});

test("reads a long list of files 1,000 at a time, and lets other requests in between", async () => {
  const file = (index: number): StoredFile => ({
    ...{ id: `file-${index}`, accountId: "acct_1", environment: "live", keyId: "key_1", appId: null, personId: null },
    ...{ madeBy: null, purpose: "user_data", filename: "a.txt", bytes: 1, createdAt: 1, expiresAt: 2 },
  });
  const limits: number[] = [];
  let others = 0;
  const route = filesRoute(async (_, { after, limit }) => {
    limits.push(limit);
    setImmediate(() => others++);
    const from = typeof after === "object" ? Number(after.id.slice(5)) + 1 : 0;
    return Array.from({ length: Math.min(limit, 2_500 - from) }, (_, index) => file(from + index));
  });
  const principal = principalFor({});
  const answer = await responseOf(() =>
    route.handle(exchangeFor(incoming({ target: "/v1/files?limit=10000" })), principal),
  );
  const { data, has_more } = (await answer.json()) as { data: { id: string }[]; has_more: boolean };
  expect(data.map(({ id }) => id)).toEqual(Array.from({ length: 2_500 }, (_, index) => `file-${index}`));
  expect([has_more, limits, others]).toEqual([false, [1_000, 1_000, 1_000], 2]);
});
