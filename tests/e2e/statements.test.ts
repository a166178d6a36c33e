// Statements over HTTP and on the command line: of an account, a key, a person, a tag, and for operators of every account.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { openDatabase } from "../../src/storage/sql/database.ts";
import { runCommand } from "../fixtures/command-line.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { type ManualClock, manualClock } from "../support/manual-clock.ts";
import { operated } from "../support/operated.ts";
import { json, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { openServerPeople, type ServerPeople, type SignedInMember } from "../support/server-people.ts";

const october = Date.UTC(2026, 9, 1) / 1000;
const november = Date.UTC(2026, 10, 1) / 1000;

let upstream: ScriptedUpstream;
let server: TestServer;
let people: ServerPeople;
let clock: ManualClock;
let ada: SignedInMember;
let owner: SignedInMember;
let keyId: string;
let otherAccount: string;
let operator: Awaited<ReturnType<typeof operated>>;

beforeAll(async () => {
  upstream = await startUpstream((request, res) => {
    const usage = {
      ...{ prompt_tokens: 1_001, completion_tokens: 57, total_tokens: 1_058 },
      ...{ prompt_tokens_details: { cached_tokens: 400 }, completion_tokens_details: { reasoning_tokens: 20 } },
    };
    const message = { role: "assistant", content: "Hello" };
    json(res, 200, {
      ...{ id: "c", object: "chat.completion", created: 1, model: request.body["model"], usage },
      choices: [{ index: 0, message, finish_reason: "stop" }],
    });
  });
  const of = (id: string, more = "") =>
    `  - { id: ${id}, ${more}deployments: [{ upstream: up, model: upstream-model }] }\n`;
  const models = `models:\n${of("priced", "price: { input: 0.15, cached_input: 0.075, output: 0.6 }, ")}${of("unpriced")}`;
  clock = manualClock(october - 1);
  server = await startHeadrace({ clock, yaml: upstreamYaml(upstream, models) });
  people = openServerPeople(server);
  owner = await people.addMember("owner");
  ada = await people.addMember("member");
  operator = await operated(server);
  otherAccount = (await operator.admin("POST", "/accounts", { name: "Another", tier: "enterprise" })).body.id;
  const others = await operator.admin("POST", `/accounts/${otherAccount}/keys`, { name: "K", environment: "dev" });
  // The last second of September, the first and the last of October, and the first of November.
  await use(server.key, "priced");
  clock.jump(1);
  await use(server.key, "priced", "team-a,team-b");
  const made = await (await server.request("/v1/keys", { body: { name: "Builds", scopes: ["chat:write"] } })).json();
  keyId = made.id;
  await use(made.key, "priced", "team-b");
  await use(made.key, "unpriced");
  await use(others.body.key, "priced");
  const login = await people.allow(ada);
  await use(login.headers.authorization.slice("Bearer ".length), "priced");
  clock.jump(november - 1 - october);
  await use(server.key, "priced");
  clock.jump(1);
  await use(server.key, "priced");
  // Who used it stays in the statement when the key and the member are gone.
  expect((await server.request(`/v1/keys/${keyId}`, { method: "DELETE" })).status).toBe(200);
  await people.removeMembership(ada.membership);
}, 60_000);

afterAll(async () => {
  people.close();
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

async function use(key: string, model: string, tags?: string): Promise<void> {
  const answer = await server.request("/v1/chat/completions", {
    headers: { authorization: `Bearer ${key}`, ...(tags === undefined ? {} : { "x-headrace-tags": tags }) },
    body: { model, messages: [{ role: "user", content: "Hello" }] },
  });
  expect(answer.status).toBe(200);
  await answer.text();
}

/** What one request to the priced model costs: 601 x 150 + 400 x 75 + 57 x 600 nano-USD. */
const one = 601 * 150 + 400 * 75 + 57 * 600;
const usd = (nano: number) => `0.${String(nano).padStart(9, "0")}`;

interface Line {
  cost: string;
  requests: number;
  [member: string]: unknown;
}

async function statement(query: string, headers: Record<string, string> = {}) {
  const response = await server.request(`/v1/statement?${query}`, { headers });
  expect(response.status).toBe(200);
  return (await response.json()) as { lines: Line[]; total: Line; others: Line | null; [member: string]: unknown };
}

test("shows a statement's scope, each part of the tokens, and the cost to the last decimal", async () => {
  const { total, ...head } = await statement("month=2026-10");
  expect(head).toMatchObject({
    ...{ object: "statement", month: "2026-10", time_zone: "UTC", start: october, end: november, is_over: true },
    ...{ installation: server.url, environment: "dev", currency: "USD", of: {}, group_by: [], overlaps: false },
    ...{ lines: [], others: null, unpriced_since: null, created_at: november },
  });
  expect(total).toEqual({
    ...{ requests: 5, prompt_tokens: 5_005, cached_tokens: 2_000, cache_write_tokens: 0, completion_tokens: 285 },
    ...{ reasoning_tokens: 100, total_tokens: 5_290, errors: 0, unpriced_requests: 1, cost: usd(4 * one) },
  });
});

test("includes in a month exactly what began in it, to the second", async () => {
  for (const [month, requests] of [
    ["2026-09", 1],
    ["2026-10", 5],
    ["2026-11", 1],
  ] as const) {
    expect([month, (await statement(`month=${month}`)).total.requests]).toEqual([month, requests]);
  }
  expect(await statement("")).toMatchObject({ month: "2026-11", is_over: false });
});

test("groups a statement by key, person, model and tag, with names of deleted ones, and adds up", async () => {
  const byKey = await statement("month=2026-10&group_by=key");
  expect(byKey.lines.find(({ key }) => key === keyId)).toMatchObject({
    ...{ key_name: "Builds", requests: 2, cost: usd(one), unpriced_requests: 1 },
  });
  const byPerson = await (
    await fetch(`${server.url}/v1/statement?month=2026-10&group_by=person`, { headers: owner.reading })
  ).json();
  expect(byPerson.lines).toMatchObject([
    { person: null, person_name: null, requests: 4, cost: usd(3 * one) },
    { person: ada.person.id, person_name: ada.person.name, requests: 1, cost: usd(one) },
  ]);
  const byModel = await statement("month=2026-10&group_by=model");
  expect(byModel.lines).toMatchObject([
    { model: "priced", requests: 4, cost: usd(4 * one), unpriced_requests: 0 },
    { model: "unpriced", requests: 1, cost: usd(0), unpriced_requests: 1 },
  ]);
  const byTag = await statement("month=2026-10&group_by=tag");
  expect(byTag).toMatchObject({ overlaps: true, total: { requests: 5, cost: usd(4 * one) } });
  expect(byTag.lines.map(({ tag, requests, cost }) => [tag, requests, cost])).toEqual(
    [
      ["team-b", 2, usd(2 * one)],
      [null, 3, usd(2 * one)],
      ["team-a", 1, usd(one)],
    ].sort(([, , a], [, , b]) => (String(a) < String(b) ? 1 : -1)),
  );
  for (const { lines, total } of [byKey, byPerson, byModel]) {
    const nano = (text: string) => BigInt(text.replace(".", ""));
    expect(lines.reduce((sum: bigint, { cost }: Line) => sum + nano(cost), 0n)).toBe(nano(total.cost));
  }
});

test("limits a statement to a key, tag or person on request, and says so", async () => {
  expect(await statement(`month=2026-10&key=${keyId}&group_by=model`)).toMatchObject({
    of: { key: keyId, key_name: "Builds" },
    total: { requests: 2 },
  });
  expect(await statement("month=2026-10&tag=team-b")).toMatchObject({ of: { tag: "team-b" }, total: { requests: 2 } });
  expect(await statement(`month=2026-10&person=${ada.person.id}`)).toMatchObject({ total: { requests: 1 } });
});

test("writes CSV with a row per line and a total, its scope, and no formulas", async () => {
  const response = await server.request("/v1/statement?month=2026-10&group_by=key,model", {
    headers: { accept: "text/csv" },
  });
  expect(response.headers.get("content-type")).toBe("text/csv; charset=utf-8");
  const [head = "", ...rows] = (await response.text()).trimEnd().split("\r\n");
  expect(head).toBe(
    "row,installation,environment,month,is_over,time_zone,account,account_name,of_key,of_person,of_app,of_tag,overlaps,key,key_name,model,requests,prompt_tokens,cached_tokens,cache_write_tokens,completion_tokens,reasoning_tokens,total_tokens,errors,unpriced_requests,cost,currency",
  );
  const cost = head.split(",").indexOf("cost");
  const cells = rows.map((row) => row.split(","));
  expect(cells.map(([kind]) => kind)).toEqual(["line", "line", "line", "line", "total"]);
  for (const row of cells) expect(row[cost]).toMatch(/^\d+\.\d{9}$/);
  const nano = (row: string[]) => BigInt((row[cost] ?? "").replace(".", ""));
  const lines = cells.filter(([kind]) => kind === "line");
  expect(lines.reduce((sum, row) => sum + nano(row), 0n)).toBe(BigInt(4 * one));
  expect(cells.at(-1)?.[cost]).toBe(usd(4 * one));
});

test("names the filtered part in CSV, and gives no name to an id without usage in the account", async () => {
  const headers = { accept: "text/csv" };
  const response = await server.request("/v1/statement?month=2026-10&tag=team-b&group_by=tag", { headers });
  const [head = "", ...rows] = (await response.text()).trimEnd().split("\r\n");
  const column = (name: string) => rows.map((row) => row.split(",")[head.split(",").indexOf(name)]);
  expect(column("of_tag")).toEqual(rows.map(() => "team-b"));
  expect(column("of_key")).toEqual(rows.map(() => ""));
  expect(column("is_over")).toEqual(rows.map(() => "true"));
  expect(column("overlaps").at(-1)).toBe("false");
  const unused = await statement(`month=2026-09&key=${keyId}`);
  expect(unused).toMatchObject({ of: { key: keyId, key_name: null }, total: { requests: 0 } });
});

test("keeps a statement unchanged after records are deleted", async () => {
  const before = await statement("month=2026-10&group_by=key,tag");
  const db = await openDatabase(join(server.dataDir, "headrace.db"));
  await db`DELETE FROM usage_records`;
  await db.close();
  expect(await statement("month=2026-10&group_by=key,tag")).toEqual(before);
});

test("gives operators the statement of any account or of all, and refuses others", async () => {
  const all = await operator.admin("GET", "/statement?month=2026-10");
  expect(all.body.lines.map((line: Line) => [line["account_name"], line.requests, line.cost])).toEqual([
    ["First account", 5, usd(4 * one)],
    ["Another", 1, usd(one)],
  ]);
  expect(all.body.total).toMatchObject({ requests: 6, cost: usd(5 * one) });
  const other = await operator.admin("GET", `/accounts/${otherAccount}/statement?month=2026-10&group_by=key`);
  expect(other.body).toMatchObject({
    account: { name: "Another" },
    total: { requests: 1 },
    lines: [{ key_name: "K" }],
  });
  expect((await operator.admin("GET", "/accounts/acct_none/statement")).status).toBe(404);
  const live = await operator.admin("GET", `/accounts/${otherAccount}/statement?month=2026-10&environment=live`);
  expect(live.body).toMatchObject({ environment: "live", total: { requests: 0 } });
  for (const path of ["/v1/admin/statement", `/v1/admin/accounts/${otherAccount}/statement`]) {
    expect((await server.request(path)).status).toBe(403);
    expect((await fetch(server.url + path, { headers: owner.reading })).status).toBe(403);
  }
});

test.each([
  "month=2026-13",
  "month=26-10",
  "month=2026-10-01",
  "group_by=account",
  "group_by=key,key",
  "group_by=",
  "of=key",
])("refuses a statement of %s by the field's name", async (query) => {
  const response = await server.request(`/v1/statement?${query}`);
  const { error } = (await response.json()) as { error: { message: string } };
  expect(response.status).toBe(400);
  expect(error.message).toContain(query.split("=")[0] ?? "");
});

function run(args: string[], key = server.key) {
  const env = { HEADRACE_BASE_URL: `${server.url}/v1`, HEADRACE_API_KEY: key };
  return runCommand(["statement", ...args], { nowMs: november * 1000, env });
}

/** The terminal leaves out the zeros that no line needs. */
const printed = (nanoUsd: number) => usd(nanoUsd).replace(/0+$/, "");

test("prints lines, total and unpriced usage by headrace statement, as a table, JSON or CSV", async () => {
  const { code, stdout, stderr } = await run(["--month", "2026-10", "--by", "model"]);
  expect(code).toBe(0);
  expect(stdout.split("\n")).toEqual([
    `Statement of 2026-10 (UTC): First account, dev, ${server.url}`,
    "MODEL     REQUESTS  INPUT  CACHED  OUTPUT  REASONING  NO PRICE        USD",
    `priced           4  4,004   1,600     228         80         0  ${printed(4 * one)}`,
    `unpriced         1  1,001     400      57         20         1  0.0000000`,
    `total            5  5,005   2,000     285        100         1  ${printed(4 * one)}`,
    "",
  ]);
  expect(stderr).toContain("Requests to models without a price, which are in no cost: 1 of ");
  expect(JSON.parse((await run(["--month", "2026-10", "--json"])).stdout).total.cost).toBe(usd(4 * one));
  expect((await run(["--month", "2026-10", "--csv"])).stdout).toContain("\r\ntotal,");
  expect((await run(["--month", "October"])).code).toBe(2);
  expect((await run(["--by", "colour"])).code).toBe(2);
  expect((await run(["--account", "all", "--by", "key"])).code).toBe(2);
});

test("prints any account's statement for operators by headrace statement", async () => {
  const { stdout } = await run(["--account", "all", "--month", "2026-10"], operator.operator);
  expect(stdout).toContain("Another");
  expect(stdout).toContain(printed(5 * one));
  expect((await run(["--account", otherAccount, "--month", "2026-10"], operator.operator)).stdout).toContain(
    "Another, dev",
  );
  expect((await run(["--account", "all"])).code).toBe(1);
});
