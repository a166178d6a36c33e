// Reports, lists and statements are read one at a time, and the accounts take turns.
import { expect, test } from "bun:test";
import { exchangeFor, incoming, responseOf } from "../../../tests/support/exchange.ts";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import { accountFor, principalFor } from "../../../tests/support/principal.ts";
import { noSums } from "../../policy/records/statements.ts";
import type { ScopedRoute } from "../exchange/route.ts";
import { refusalRoutes } from "./usage/refusal-routes.ts";
import { requestRoutes } from "./usage/request-routes.ts";
import { statementRoutes } from "./usage/statement-routes.ts";
import { usageRoutes } from "./usage/usage-routes.ts";

/** Returns the most reads that were under way at once, of 4 requests of one account and 2 of another. */
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

test("sums one report of usage at a time", async () => {
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

test("reads one page of requests at a time", async () => {
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

test("reads one list of refusals at a time", async () => {
  const routeOf = (read: <Value>(value: Value) => Promise<Value>) =>
    first(refusalRoutes({ ...common, refusalStore: { list: () => read([]) }, refusalCounts: { flush } }));
  expect(await mostAtOnce(routeOf, "/v1/refusals")).toBe(1);
});

test("sums the statement of an account before the waiting statements of another, and bounds those", async () => {
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
    summedLedger: { flush },
    installationUrl: () => "http://127.0.0.1:1",
    unpricedSince: 0,
    parties: { credentials: async () => new Map(), people: async () => new Map() },
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
