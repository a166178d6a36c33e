// The usage endpoints over HTTP: what they answer as JSON and as CSV, from a real database.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { GatewayError } from "../../src/base/errors.ts";
import type { KeyChain, Principal } from "../../src/domain/principal.ts";
import type { UsageReports } from "../../src/domain/usage/usage.ts";
import { type UsageRouteDeps, usageRoutes } from "../../src/http/api/usage/usage-routes.ts";
import { errorAnswer } from "../../src/http/exchange/errors.ts";
import { pathOf } from "../../src/http/exchange/route-table.ts";
import type { IncomingRequest, Reply } from "../../src/http1/message.ts";
import { type Http1Server, startHttp1Server } from "../../src/http1/server/server.ts";
import { SqlUsageReports } from "../../src/ledger/usage/usage-reports.ts";
import { type Database, openDatabase } from "../../src/storage/sql/database.ts";
import { toGatewayError } from "../../src/wire/errors.ts";
import { exchangeFor } from "../support/exchange.ts";
import { manualClock } from "../support/manual-clock.ts";
import { accountFor, keyRecordFor, principalFor } from "../support/principal.ts";

const day = 86_400;
const september = Date.UTC(2026, 8, 1) / 1000;
const clock = manualClock(september + 20 * day);

let directory: string;
let db: Database;
let reports: SqlUsageReports;
let server: Http1Server;
/** What the next request meets. */
let deps: UsageRouteDeps;
let principal: Principal;
/** The log lines of answers that went on after their handler. */
const ended: string[] = [];

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "headrace-usage-report-"));
  db = await openDatabase(join(directory, "headrace.db"));
  reports = new SqlUsageReports(db);
  await used({ model: "a", requests: 2, nano_usd: 1, errors: 1, ...timed(2, 301, 100, 3_000) });
  await used({ model: "=b", app_id: "app_1", nano_usd: 1_500_000_000, ...timed(1, 100, 1, 0) });
  await used({ key_id: "key_2", start: september + day });
  await used({ environment: "test", requests: 99 });
  await used({ account_id: "acct_2", key_id: "key_of_2", requests: 99 });
  // More than fit into one page of the database, for the CSV of another account.
  const many = Array.from({ length: 2_500 }, (_, i) => row({ account_id: "acct_many", model: `m${i}` }));
  await db`INSERT INTO usage_rollups ${db(many)}`;
  server = startHttp1Server({
    port: 0,
    hostname: "127.0.0.1",
    onRequest: (req, reply) => void answer(req, reply),
    onMalformed: ({ reason }) => ({ headers: {}, body: reason }),
    onFault: (error) => {
      throw error;
    },
  });
});

afterAll(async () => {
  server.close();
  await db.close();
  rmSync(directory, { recursive: true, force: true });
});

const keys: UsageRouteDeps["keys"] = {
  async findChainById(id): Promise<KeyChain | undefined> {
    const known = [
      keyRecordFor({ id: "key_1" }),
      keyRecordFor({ id: "key_2" }),
      keyRecordFor({ id: "key_test", environment: "test" }),
      keyRecordFor({ id: "key_of_2", accountId: "acct_2" }),
    ];
    const key = known.find((one) => one.id === id);
    return key && { keys: [key], account: accountFor() };
  },
};

function row(more: Record<string, string | number>) {
  return {
    account_id: "acct_1",
    environment: "live",
    span: "day",
    start: september,
    key_id: "key_1",
    app_id: "",
    model: "a",
    requests: 1,
    prompt_tokens: 10,
    completion_tokens: 5,
    nano_usd: 0,
    errors: 0,
    ...more,
  };
}

const timed = (answers: number, first_token_ms: number, generated_tokens: number, generation_ms: number) => ({
  timed: answers,
  first_token_ms,
  generated_tokens,
  generation_ms,
});

const used = (more: Record<string, string | number>) => db`INSERT INTO usage_rollups ${db(row(more))}`;

async function answer(req: IncomingRequest, reply: Reply): Promise<void> {
  const path = pathOf(req.target);
  const id = /^\/v1\/keys\/(.+)\/usage$/.exec(path)?.[1];
  const route = usageRoutes(deps).find((one) => one.path === (id === undefined ? path : "/v1/keys/:id/usage"));
  const exchange = exchangeFor(req, {
    params: id === undefined ? {} : { id },
    answerHeaders: { vary: "Origin" },
    defer: () => ({ finish: (error) => void ended.push(error?.code ?? "ok") }),
  });
  try {
    if (!route) throw new GatewayError("not_found", "no route");
    const given = await route.handle(exchange, principal);
    const headers = { ...Object.fromEntries(new Headers(given.headers)), ...exchange.answerHeaders };
    if (given instanceof Response) reply.send(given.status, headers, await given.bytes());
    else if ("upgrade" in given) given.upgrade(reply.upgrade(headers));
    else if ("begin" in given) given.begin(reply.stream(given.status, headers));
    else reply.send(given.status, headers, given.body);
  } catch (error) {
    const { status, headers, body } = errorAnswer(toGatewayError(error));
    reply.send(status, headers, body);
  }
}

interface Ask {
  accept?: string;
  as?: Parameters<typeof principalFor>[0];
  reports?: UsageReports;
  flush?: () => Promise<void>;
}

function get(path: string, { accept, as, ...given }: Ask = {}): Promise<Response> {
  principal = principalFor(as);
  deps = { reports: given.reports ?? reports, ledger: { flush: given.flush ?? (async () => {}) }, keys, clock };
  ended.length = 0;
  return fetch(`http://127.0.0.1:${server.port}${path}`, accept === undefined ? {} : { headers: { accept } });
}

const listShape = z.object({
  data: z.array(z.record(z.string(), z.unknown())),
  next: z.string().nullable(),
});

async function list(path: string, ask: Ask = {}): Promise<z.infer<typeof listShape>> {
  const response = await get(path, ask);
  expect(response.status).toBe(200);
  return listShape.parse(await response.json());
}

describe("the usage report as JSON", () => {
  test("reports all figures of each bucket, with the cost as an exact decimal", async () => {
    const response = await get("/v1/usage");
    expect(response.headers.get("vary")).toBe("Origin, Accept");
    expect(await response.json()).toEqual({
      object: "list",
      data: [
        {
          start: september,
          end: september + day,
          requests: 3,
          prompt_tokens: 20,
          completion_tokens: 10,
          ...{ cached_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0, unpriced_requests: 0 },
          total_tokens: 30,
          cost: 1.500_000_001,
          errors: 1,
          first_token_ms: 133.67,
          tokens_per_second: 33.67,
          percentiles: null,
        },
        {
          start: september + day,
          end: september + 2 * day,
          requests: 1,
          prompt_tokens: 10,
          completion_tokens: 5,
          ...{ cached_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0, unpriced_requests: 0 },
          total_tokens: 15,
          cost: 0,
          errors: 0,
          first_token_ms: null,
          tokens_per_second: null,
          percentiles: null,
        },
      ],
      next: null,
    });
  });

  test("names the requested groups of a report, and pages by `next`", async () => {
    const path = "/v1/usage?bucket=month&group_by=key,model,app,environment&limit=1";
    const seen: unknown[] = [];
    let next: string | null = "";
    while (next !== null) {
      const page = await list(next === "" ? path : `${path}&cursor=${next}`);
      expect(page.data).toHaveLength(1);
      seen.push(page.data.map(({ key, model, app, environment }) => [key, model, app, environment])[0]);
      next = page.next;
    }
    expect(seen).toEqual([
      ["key_1", "=b", "app_1", "live"],
      ["key_1", "a", null, "live"],
      ["key_2", "a", null, "live"],
    ]);
  });

  test("limits an app token's report to the app's usage", async () => {
    const { data } = await list("/v1/usage", { as: { appId: "app_1" } });
    expect(data.map(({ requests, cost }) => [requests, cost])).toEqual([[1, 1.5]]);
  });

  test("limits a key's report to the key's usage", async () => {
    const { data } = await list("/v1/keys/key_2/usage?group_by=key");
    expect(data.map(({ start, key, requests }) => [start, key, requests])).toEqual([[september + day, "key_2", 1]]);
  });

  test.each(["key_none", "key_of_2", "key_test"])(
    "returns 404 for usage of an unknown or another owner's key: %s",
    async (id) => {
      const response = await get(`/v1/keys/${id}/usage`);
      expect(response.status).toBe(404);
      expect(await response.json()).toMatchObject({ error: { code: "not_found" } });
    },
  );

  test("refuses a wrong report parameter by name", async () => {
    for (const search of ["bucket=week", "limit=1001", "limit=0", "cursor=x", "group_by=all", "start=x", "page=2"]) {
      const response = await get(`/v1/usage?${search}`);
      expect(response.status).toBe(400);
      const { error } = z.object({ error: z.object({ message: z.string() }) }).parse(await response.json());
      expect(error.message).toStartWith(`${search.split("=")[0]}: `);
    }
  });
});

describe("usage that just ended", () => {
  test("writes recent usage before reading the report", async () => {
    const flush = async () => {
      await Bun.sleep(20);
      await used({ account_id: "acct_late", requests: 7 });
    };
    const as = { account: accountFor({ id: "acct_late" }) };
    expect((await list("/v1/usage", { as, flush })).data).toMatchObject([{ requests: 7 }]);
  });

  test("does not delay the report for recent usage if the database cannot be written", async () => {
    const failing = () => Promise.reject(new Error("disk full"));
    expect((await list("/v1/usage", { flush: failing })).data).toHaveLength(2);
    const startedMs = performance.now();
    expect((await list("/v1/usage", { flush: () => new Promise(() => {}) })).data).toHaveLength(2);
    expect(performance.now() - startedMs).toBeWithin(900, 5_000);
  });
});

describe("the usage report as CSV", () => {
  test("writes CSV with a header, readable times, plain decimals, and no formulas", async () => {
    const response = await get("/v1/usage?group_by=model,app", { accept: "text/csv" });
    expect(response.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(response.headers.get("vary")).toBe("Origin, Accept");
    expect((await response.text()).split("\r\n")).toEqual([
      "start,end,model,app,requests,prompt_tokens,completion_tokens,total_tokens,cost,errors,first_token_ms,tokens_per_second,cached_tokens,cache_write_tokens,reasoning_tokens,unpriced_requests,first_token_p50_ms,first_token_p95_ms,first_token_p99_ms,total_p50_ms,total_p95_ms,total_p99_ms",
      "2026-09-01T00:00:00Z,2026-09-02T00:00:00Z,'=b,app_1,1,10,5,15,1.5,0,100,,0,0,0,0,,,,,,",
      "2026-09-01T00:00:00Z,2026-09-02T00:00:00Z,a,,2,10,5,15,0.000000001,1,150.5,33.33,0,0,0,0,,,,,,",
      "2026-09-02T00:00:00Z,2026-09-03T00:00:00Z,a,,1,10,5,15,0,0,,,0,0,0,0,,,,,,",
      "",
    ]);
    expect(ended).toEqual(["ok"]);
  });

  test("writes an empty CSV report as its header", async () => {
    const as = { account: accountFor({ id: "acct_none" }) };
    const text = await (await get("/v1/usage", { accept: "text/csv", as })).text();
    expect(text).toBe(
      "start,end,requests,prompt_tokens,completion_tokens,total_tokens,cost,errors,first_token_ms,tokens_per_second,cached_tokens,cache_write_tokens,reasoning_tokens,unpriced_requests,first_token_p50_ms,first_token_p95_ms,first_token_p99_ms,total_p50_ms,total_p95_ms,total_p99_ms\r\n",
    );
  });

  const many = { account: accountFor({ id: "acct_many" }) };

  test("writes all rows of a CSV report, whatever the page size", async () => {
    const response = await get("/v1/usage?group_by=model&limit=2", { accept: "text/csv", as: many });
    const models = (await response.text())
      .split("\r\n")
      .slice(1, -1)
      .map((line) => line.split(",")[2]);
    expect(models).toHaveLength(2_500);
    expect(new Set(models).size).toBe(2_500);
  });

  test("answers a CSV report that fails at once with an error, and cuts one that fails later", async () => {
    let calls = 0;
    const failingAt = (call: number): UsageReports => ({
      report: (query, page) => (++calls === call ? Promise.reject(new Error("SECRET")) : reports.report(query, page)),
    });
    const first = await get("/v1/usage?group_by=model", { accept: "text/csv", as: many, reports: failingAt(1) });
    expect(first.status).toBe(500);
    expect(await first.text()).not.toContain("SECRET");
    calls = 0;
    const second = await get("/v1/usage?group_by=model", { accept: "text/csv", as: many, reports: failingAt(2) });
    expect(second.status).toBe(200);
    expect(await second.text().catch(() => "broken off")).toBe("broken off");
    expect(ended).toEqual(["internal_error"]);
  });

  test("stops reading the database for a CSV client that does not read or has left", async () => {
    let calls = 0;
    const endless: UsageReports = {
      async report(query, { limit }) {
        calls++;
        const [one] = await reports.report(query, { after: undefined, limit: 1 });
        if (!one) throw new Error("no row");
        return Array.from({ length: limit }, () => ({ ...one, groups: { model: "m".repeat(200) } }));
      },
    };
    const path = "/v1/usage?group_by=model";
    const response = await get(path, { accept: "text/csv", as: many, reports: endless });
    let last = -1;
    while (last !== calls) {
      last = calls;
      await Bun.sleep(50);
    }
    // What the kernel's buffers take, and not the whole of an endless report.
    expect(calls).toBeLessThan(200);
    await response.body?.cancel();
    const endMs = performance.now() + 5_000;
    while (ended.length === 0 && performance.now() < endMs) await Bun.sleep(5);
    // Both the request and the stream are told; the log line is one.
    await Bun.sleep(20);
    expect(ended).toEqual(["ok"]);
    expect(calls).toBeLessThan(last + 5);
  });
});
