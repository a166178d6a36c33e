// What operators see of all accounts: figures and attempts of every request, never content, and each look is audited.
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { scopes } from "../../src/domain/scope.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { mintKey, mintKeyRecord } from "../support/mint-key.ts";
import { chatScript, json, type ScriptedUpstream, startUpstream } from "../support/scripted-upstream.ts";

const canary = "CANARY of a prompt";
const chat = { model: "shared", messages: [{ role: "user", content: canary }] };

interface Row {
  id: string;
  account: string;
  key: string;
  outcome: string;
  upstream: string | null;
  trail: { upstream: string | null; result: string; status: number | null; reason: string | null }[];
  [member: string]: unknown;
}
interface Answer {
  data: Row[];
  names: Record<string, string>;
  next: string | null;
}

let first: ScriptedUpstream;
let second: ScriptedUpstream;
let server: TestServer;
/** Two operators of different accounts, and the customers. */
let operator: string;
let acme: { id: string; key: string; keyId: string };
let bolt: { id: string; key: string; keyId: string };
const asked: Record<string, string> = {};
const shown: string[] = [];

beforeAll(async () => {
  [first, second] = [await startUpstream(), await startUpstream()];
  const upstreams = `upstreams: [{ name: one, url: "${first.url}" }, { name: two, url: "${second.url}" }]\n`;
  const model = (id: string, upstream: string, more = "") =>
    `  - { id: ${id}, price: { input: 1000, output: 2000 }, deployments: [{ upstream: ${upstream}, model: upstream-model }]${more} }\n`;
  const models = model("shared", "one", ", fallbacks: [spare]") + model("spare", "two");
  server = await startHeadrace({ yaml: `${upstreams}models:\n${models}` });
  operator = await mintKey(server.dataDir, { scopes, accountId: server.firstKey.record.accountId });
  acme = await customer("Acme", ada);
  bolt = await customer("Bolt");
  asked["answered"] = await ask(acme.key, chat, { "x-headrace-tags": "team-a" });
  const detail = [{ loc: ["body", "messages", 0, "content"], msg: "Field required", type: "missing", input: canary }];
  for (const one of [first, second]) one.script((_request, res) => json(res, 422, { detail }));
  asked["invalid"] = await ask(acme.key, chat);
  first.script((_request, res) => json(res, 500, { error: { message: `CUDA out of memory. Tried: ${canary}` } }));
  asked["moved"] = await ask(bolt.key, chat);
  for (const one of [first, second])
    one.script((_request, res) => json(res, 500, { error: "The secret word is heron" }));
  asked["failed"] = await ask(acme.key, chat);
  asked["refused"] = await ask(bolt.key, { ...chat, model: `${canary} in place of a model` });
}, 60_000);

afterEach(() => {
  for (const text of shown) expect(text).not.toMatch(/CANARY|heron/);
  shown.length = 0;
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await first[Symbol.asyncDispose]();
  await second[Symbol.asyncDispose]();
});

/** The person whose key Acme uses. */
const ada = "usr_ada";

async function customer(
  name: string,
  personId: string | null = null,
): Promise<{ id: string; key: string; keyId: string }> {
  const made = await server.request("/v1/admin/accounts", {
    headers: { authorization: `Bearer ${operator}` },
    body: { name },
  });
  const { id } = (await made.json()) as { id: string };
  const { key, record } = await mintKeyRecord(server.dataDir, {
    ...{ accountId: id, name: `Key of ${name}`, personId },
    scopes: scopes.filter((scope) => scope !== "admin:manage"),
  });
  return { id, key, keyId: record.id };
}

async function ask(key: string, body: object, headers: Record<string, string> = {}): Promise<string> {
  const answer = await server.request("/v1/chat/completions", {
    body,
    headers: { authorization: `Bearer ${key}`, ...headers },
  });
  await answer.text();
  first.script(chatScript());
  second.script(chatScript());
  return answer.headers.get("x-request-id") ?? "";
}

async function read<Shape = Answer>(path: string, key = operator): Promise<{ status: number; body: Shape }> {
  const response = await server.request(path, { headers: { authorization: `Bearer ${key}` } });
  const text = await response.text();
  shown.push(text);
  return { status: response.status, body: JSON.parse(text) as Shape };
}

/** The names of the requests that the list has with these parameters. */
async function found(query: string): Promise<string[]> {
  const { status, body } = await read(`/v1/admin/requests?${query}`);
  expect([query, status]).toEqual([query, 200]);
  const names = new Map(Object.entries(asked).map(([name, id]) => [id, name]));
  return body.data.map(({ id }) => names.get(id) ?? id).sort();
}

test("lists the requests of all accounts with their account and the names of both", async () => {
  await until(async () => (await found("limit=50")).length === 5, "the requests of both accounts");
  const { body } = await read("/v1/admin/requests");
  const moved = body.data.find(({ id }) => id === asked["moved"]);
  expect(moved).toMatchObject({ account: bolt.id, key: bolt.keyId, environment: "dev", upstream: "two", attempts: 2 });
  expect(body.names).toMatchObject({
    ...{ [acme.id]: "Acme", [bolt.id]: "Bolt" },
    ...{ [acme.keyId]: "Key of Acme", [bolt.keyId]: "Key of Bolt" },
  });
  const refused = body.data.find(({ id }) => id === asked["refused"]);
  expect(refused).toMatchObject({ outcome: "refused", model: null, error_message: null, account: bolt.id });
});

const filters: [query: () => string, names: string[]][] = [
  [() => `account=${acme.id}`, ["answered", "failed", "invalid"]],
  [() => `account=${bolt.id}&outcome=refused`, ["refused"]],
  [() => `key=${bolt.keyId}`, ["moved", "refused"]],
  [() => "outcome=failed", ["failed", "invalid"]],
  [() => "outcome=completed&model=shared", ["answered", "moved"]],
  [() => "upstream=one", ["answered", "failed", "invalid", "moved"]],
  [() => "upstream=two&outcome=completed", ["moved"]],
  [() => "deployment=one/shared&outcome=failed", ["failed", "invalid"]],
  [() => "deployment=one/other", []],
  [() => `account=${acme.id}&tag=team-a`, ["answered"]],
  [() => `person=${ada}`, ["answered", "failed", "invalid"]],
  [() => `person=${ada}&outcome=completed`, ["answered"]],
  [() => "person=usr_none", []],
  [() => "environment=live", []],
];
test.each(filters)("filters the requests of all accounts (%#)", async (query, names) => {
  expect(await found(query())).toEqual(names);
});

test("pages through the requests of all accounts without gaps", async () => {
  const seen: string[] = [];
  for (let cursor = "", pages = 0; pages < 20; pages++) {
    const { body } = await read(`/v1/admin/requests?limit=2${cursor}`);
    seen.push(...body.data.map(({ id }) => id));
    if (body.next === null) break;
    cursor = `&cursor=${body.next}`;
  }
  expect(seen.toSorted()).toEqual(Object.values(asked).sort());
});

test("reduces a model server's message to known phrases", async () => {
  const trailOf = async (name: string) => (await read<Row>(`/v1/admin/requests/${asked[name]}`)).body.trail;
  expect((await trailOf("moved"))[0]).toMatchObject({
    ...{ upstream: "one", result: "refused", status: 500 },
    reason: "CUDA out of memory …",
  });
  expect((await trailOf("invalid"))[0]).toMatchObject({ status: 422, reason: "messages[0].content: Field required" });
  const failed = await trailOf("failed");
  expect(failed.map(({ status }) => status)).toContain(500);
  for (const { reason } of failed) expect(reason).toBeNull();
});

test("audits each look at another account's request, also in the account's own log", async () => {
  const own = await mintKeyRecord(server.dataDir, { scopes, accountId: bolt.id, name: "Operator of Bolt" });
  const viewed = async () => {
    const { body } = await read(`/v1/admin/audit?action=request.viewed&account=${bolt.id}`);
    return body.data as unknown as { target_id: string; actor: { id: string }; request_id: string }[];
  };
  const before = (await viewed()).length;
  expect((await read(`/v1/admin/requests/${asked["moved"]}`)).status).toBe(200);
  expect((await read(`/v1/admin/requests/${asked["moved"]}`, own.key)).status).toBe(200);
  const events = await viewed();
  expect(events).toHaveLength(before + 1);
  expect(events[0]).toMatchObject({ target_id: asked["moved"] });
});

test("adds up the usage of all accounts by every group", async () => {
  const sums = async (query: string) => {
    const { status, body } = await read(`/v1/admin/usage?${query}`);
    expect([query, status]).toEqual([query, 200]);
    return body.data as unknown as Record<string, unknown>[];
  };
  expect(await sums("bucket=month")).toMatchObject([{ requests: 4, errors: 2 }]);
  const byAccount = await sums("bucket=month&group_by=account");
  expect(byAccount.map(({ account, requests }) => [account, requests])).toEqual(
    acme.id < bolt.id
      ? [
          [acme.id, 3],
          [bolt.id, 1],
        ]
      : [
          [bolt.id, 1],
          [acme.id, 3],
        ],
  );
  const byPerson = await sums("bucket=month&group_by=person");
  expect(new Map(byPerson.map(({ person, requests }) => [person, requests]))).toEqual(
    new Map<unknown, unknown>([
      [ada, 3],
      [null, 1],
    ]),
  );
  expect(await sums(`bucket=day&group_by=account,tag&account=${acme.id}`)).toHaveLength(2);
  for (const bucket of ["minute", "hour", "day", "month"]) {
    const rows = await sums(
      `bucket=${bucket}&group_by=upstream,outcome&start=${Math.floor(Date.now() / 1000) - 3_600}`,
    );
    const total = new Map<string, number>();
    for (const { upstream, outcome, requests } of rows) {
      const name = `${upstream} ${outcome}`;
      total.set(name, (total.get(name) ?? 0) + Number(requests));
    }
    expect(Object.fromEntries(total)).toEqual({ "null failed": 2, "one completed": 1, "two completed": 1 });
  }
  const [deployment] = await sums(`group_by=deployment&upstream=two&account=${bolt.id}`);
  expect(deployment).toMatchObject({ deployment: "two/shared", requests: 1, errors: 0 });
  // Both the stored sums and those of single requests count the times.
  for (const query of ["group_by=deployment", "group_by=deployment,outcome"]) {
    const timed = (await sums(query)).map(({ deployment: name, percentiles }) => [name, percentiles]);
    const counts = [expect.objectContaining({ answers: 1 })];
    expect(Object.fromEntries(timed)).toMatchObject({ "one/shared": { total_ms: { counts } } });
  }
  for (const group of ["key", "person", "app"]) {
    for (const { percentiles } of await sums(`group_by=${group}`)) expect(percentiles).toBeNull();
    const counted = await sums(`group_by=${group}&outcome=completed`);
    expect([group, counted.length]).not.toEqual([group, 0]);
    for (const { percentiles } of counted) expect(percentiles).toMatchObject({ total_ms: { p50: expect.any(Number) } });
  }
  expect((await read(`/v1/admin/usage?group_by=account,key`)).body.names).toMatchObject({ [acme.id]: "Acme" });
});

test("shows the overview of all accounts with names and percentiles, and 304 while nothing changes", async () => {
  interface Overview {
    usage: {
      sum: { requests: number; percentiles: { total_ms: { p50: number; p99: number } | null } };
      groups: { id: string | null }[];
    };
    errors: { id: string }[];
    names: Record<string, string>;
  }
  const { body } = await read<Overview>("/v1/admin/overview?group_by=account");
  expect(body.usage.sum.requests).toBe(4);
  expect(body.usage.sum.percentiles.total_ms?.p99).toBeGreaterThanOrEqual(
    body.usage.sum.percentiles.total_ms?.p50 ?? 1,
  );
  expect(body.usage.groups.map(({ id }) => body.names[id ?? ""]).sort()).toEqual(["Acme", "Bolt"]);
  expect(new Set(body.errors.map(({ id }) => id))).toEqual(new Set([asked["failed"] ?? "", asked["invalid"] ?? ""]));
  const byServer = await read<Overview>("/v1/admin/overview?group_by=upstream&range=7d");
  expect(new Set(byServer.body.usage.groups.map(({ id }) => id))).toEqual(new Set([null, "one", "two"]));
  const headers = { authorization: `Bearer ${operator}` };
  const etag = await until(async () => {
    const first = await server.request("/v1/admin/overview", { headers });
    const tag = first.headers.get("etag") ?? "";
    const again = await server.request("/v1/admin/overview", { headers: { ...headers, "if-none-match": tag } });
    return again.status === 304 ? tag : undefined;
  }, "an unchanged overview");
  expect(etag).not.toBe("");
});

test("adds up the same from single requests as from the sums", async () => {
  const rows = async (query: string) =>
    (await read(`/v1/admin/usage?bucket=hour&group_by=account,model&${query}`)).body.data;
  const start = `start=${Math.floor(Date.now() / 1000) - 3_600}`;
  const outcomes = await Promise.all(["completed", "failed"].map((outcome) => rows(`${start}&outcome=${outcome}`)));
  const added = new Map<string, number>();
  const costs = (of: readonly Row[]) => {
    added.clear();
    for (const row of of) {
      const name = `${row.account} ${row["start"]}`;
      added.set(name, (added.get(name) ?? 0) + Math.round(Number(row["cost"]) * 1e9) + Number(row["total_tokens"]));
    }
    return Object.fromEntries([...added].toSorted());
  };
  const fromRequests = costs(outcomes.flat());
  expect(fromRequests).toEqual(costs(await rows(start)));
  const counted = Object.entries(fromRequests).filter(([, sum]) => sum > 0);
  expect(new Set(counted.map(([name]) => name.split(" ")[0]))).toEqual(new Set([acme.id, bolt.id]));
});

test("shows the last five minutes by minute if no start is given", async () => {
  const before = Date.now() / 1_000;
  await ask(acme.key, chat);
  const { status, body } = await read<{ data: { start: number; end: number }[] }>("/v1/admin/usage?bucket=minute");
  expect(status).toBe(200);
  expect(body.data.at(-1)?.end).toBeGreaterThan(before);
  for (const { start } of body.data) expect(start).toBeGreaterThanOrEqual(Math.floor(before / 60) * 60 - 300);
});

test.each([
  "/v1/admin/requests?tag=team-a",
  "/v1/admin/usage?group_by=tag",
  "/v1/admin/usage?group_by=upstream,tag&key=key_x",
  "/v1/admin/requests?deployment=one",
  "/v1/admin/requests?deployment=one/shared&upstream=two",
  "/v1/admin/usage?bucket=minute&start=2020-01-01",
])("refuses %s with a reason", async (path) => {
  const { status, body } = await read<{ error: { message: string } }>(path);
  expect(status).toBe(400);
  expect(body.error.message).toMatch(/^(tag|group_by|deployment|start): /);
});

test("lists refusals by account, and shows none of this to other keys", async () => {
  const limited = await mintKeyRecord(server.dataDir, {
    ...{ accountId: bolt.id, scopes: ["chat:write"], rateLimit: 1, rateLimitWindow: 3_600 },
  });
  for (let i = 0; i < 2; i++) await ask(limited.key, chat);
  const { body } = await read("/v1/admin/refusals");
  expect(body.data).toMatchObject([{ account: bolt.id, key: limited.record.id, model: "shared", requests: 1 }]);
  expect((await read(`/v1/admin/refusals?account=${acme.id}`)).body.data).toEqual([]);
  for (const path of ["requests", `requests/${asked["moved"]}`, "usage", "refusals", "overview"]) {
    expect((await read(`/v1/admin/${path}`, acme.key)).status).toBe(403);
  }
});
