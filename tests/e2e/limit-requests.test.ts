// Members ask for more of a quota, owners grant it for a time at two replicas, and operators do so for accounts.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { type Browser, invite, setUp } from "../support/browser.ts";
import { until } from "../support/headrace.ts";
import { shiftedClock } from "../support/manual-clock.ts";
import { startRedis } from "../support/redis.ts";
import { startReplicas, type TestReplicas } from "../support/replicas.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const hour = 3_600;
/** Longer than the test, however the calendar stands. */
const per = 30 * 86_400;
const people = {
  ada: { email: "ada@example.test", name: "Ada", password: "brisk willow lantern nine" },
  bob: { email: "bob@example.test", name: "Bob", password: "quiet copper meadow four" },
  erin: { email: "erin@example.test", name: "Erin", password: "marble canyon ribbon ten" },
  carl: { email: "carl@example.test", name: "Carl", password: "amber tunnel forest six" },
};

let upstream: ScriptedUpstream;
let redis: Awaited<ReturnType<typeof startRedis>>;
let all: TestReplicas;
let olga: Browser;
let ada: Browser;
const clock = shiftedClock();

beforeAll(async () => {
  [upstream, redis] = await Promise.all([startUpstream(), startRedis()]);
  all = await startReplicas({
    clock,
    yaml: upstreamYaml(upstream),
    env: { HEADRACE_REDIS_URL: redis.url },
  });
  olga = await setUp(all);
  ada = await invite(olga, { person: people.ada });
}, 60_000);

afterAll(async () => {
  await all[Symbol.asyncDispose]();
  await Promise.all([upstream, redis].map((part) => part[Symbol.asyncDispose]()));
});

// biome-ignore lint/suspicious/noExplicitAny: each test says itself what must be in it
type Answer = any;

async function ask(browser: Browser, method: string, path: string, body?: unknown): Promise<Answer> {
  const response = await browser.request(path, { method, ...(body === undefined ? {} : { body }) });
  return { status: response.status, ...((await response.json()) as object) };
}

async function membershipOf(browser: Browser): Promise<string> {
  const { account, accounts } = await ask(browser, "GET", "/v1/session");
  return accounts.find(({ id }: { id: string }) => id === account.id).membership_id;
}

/** Sends requests to both replicas at once. Returns how many were answered. */
async function admitted(key: string, count: number): Promise<number> {
  const statuses = await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      const response = await fetch(`${all.servers[i % 2]?.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "upstream-model", messages: [{ role: "user", content: "x" }] }),
      });
      await response.text();
      return response.status;
    }),
  );
  expect(new Set(statuses).difference(new Set([200, 403]))).toEqual(new Set());
  return statuses.filter((status) => status === 200).length;
}

const limitAt = async (url: string | undefined, key: string): Promise<number | undefined> => {
  const answer = await fetch(`${url}/v1/limits`, { headers: { authorization: `Bearer ${key}` } });
  const { quotas } = (await answer.json()) as { quotas: { owner: string; amount: number }[] };
  return quotas.find(({ owner }) => owner !== "key")?.amount;
};

test("raises a member's quota exactly at two replicas, and ends the raise by the clock", async () => {
  const events = ["limit.requested", "limit.decided"];
  const webhook = await ask(olga, "POST", "/v1/webhooks", { url: "https://hooks.example.test/", events });
  const quota = { unit: "requests", per };
  await ask(olga, "PATCH", `/v1/members/${await membershipOf(ada)}`, { quotas: [{ ...quota, amount: 3 }] });
  const { key } = await ask(ada, "POST", "/v1/keys", { name: "Own", scopes: ["chat:write", "models:read"] });
  expect(await admitted(key, 10)).toBe(3);

  const opened = await ask(ada, "POST", "/v1/limit-requests", { ...quota, amount: 2, reason: "evaluation" });
  expect(opened).toMatchObject({ status: "open", owner: "member", unit: "requests", per, amount: 2, decision: null });
  const again = await ask(ada, "POST", "/v1/limit-requests", { ...quota, reason: "again" });
  expect([again.status, again.error.message]).toEqual([400, expect.stringContaining("open request")]);
  const [listed] = (await ask(olga, "GET", "/v1/limit-requests?status=open")).data;
  expect(listed).toMatchObject({ id: opened.id, reason: "evaluation", person: { email: people.ada.email } });
  expect((await ask(ada, "POST", `/v1/limit-requests/${opened.id}/grant`, { amount: 2, seconds: hour })).status).toBe(
    403,
  );

  const decisions = await Promise.all(
    [1, 2].map(() => ask(olga, "POST", `/v1/limit-requests/${opened.id}/grant`, { amount: 2, seconds: hour })),
  );
  expect(decisions.map(({ status }) => status).sort()).toEqual([400, "granted"]);
  for (const { url } of all.servers)
    await until(async () => (await limitAt(url, key)) === 5, "the raise applies", 1_000);
  expect(await admitted(key, 10)).toBe(2);

  clock.shift(hour + 1);
  for (const { url } of all.servers) expect(await limitAt(url, key)).toBe(3);
  expect(await admitted(key, 4)).toBe(0);
  expect((await ask(ada, "GET", "/v1/limit-requests")).data).toMatchObject([{ id: opened.id, status: "ended" }]);
  const sent = async () => (await ask(olga, "GET", `/v1/webhooks/${webhook.id}/deliveries`)).data;
  await until(async () => (await sent()).length === 2, "both are notified");
  expect((await sent()).map(({ type }: Answer) => type).sort()).toEqual([...events].sort());
  const { data: audited } = await ask(olga, "GET", `/v1/audit?target=${opened.id}`);
  expect(audited.map(({ action }: { action: string }) => action)).toEqual(["limit.granted", "limit.requested"]);
}, 60_000);

test("ends a raise early, refuses a request, and keeps both from members and other accounts", async () => {
  const [bob, carl] = [await invite(olga, { person: people.bob }), await invite(olga, { person: people.carl })];
  const quota = { unit: "usd", per: "day" };
  await ask(olga, "PATCH", `/v1/members/${await membershipOf(bob)}`, { quotas: [{ ...quota, amount: 1 }] });
  const missing = await ask(bob, "POST", "/v1/limit-requests", { ...quota, per: "week", reason: "x" });
  expect([missing.status, missing.error.message]).toEqual([400, expect.stringContaining("no such quota")]);
  const ofAccount = await ask(bob, "POST", "/v1/limit-requests", { ...quota, owner: "account", reason: "x" });
  expect(ofAccount.status).toBe(403);

  const { id } = await ask(bob, "POST", "/v1/limit-requests", { ...quota, reason: "x" });
  expect((await ask(carl, "GET", "/v1/limit-requests")).data).toEqual([]);
  expect((await ask(carl, "POST", `/v1/limit-requests/${id}/refuse`)).status).toBe(403);
  await ask(olga, "POST", `/v1/limit-requests/${id}/grant`, { amount: 0.5, seconds: hour });
  const path = `/v1/members/${await membershipOf(bob)}`;
  expect((await ask(bob, "GET", path)).quotas_used).toMatchObject([{ amount: 1.5 }]);
  const other = await ask(olga, "POST", "/v1/admin/accounts", { name: "Elsewhere", tier: "pro" });
  const elsewhere = await invite(olga, { person: people.erin, role: "owner", account: other.id });
  expect((await ask(elsewhere, "GET", "/v1/limit-requests")).data).toEqual([]);
  for (const decision of ["grant", "refuse"]) {
    const body = { amount: 1, seconds: hour };
    expect((await ask(elsewhere, "POST", `/v1/limit-requests/${id}/${decision}`, body)).status).toBe(404);
  }
  expect(await ask(olga, "POST", `/v1/limit-requests/${id}/refuse`)).toMatchObject({ status: "refused" });
  expect((await ask(bob, "GET", path)).quotas_used).toMatchObject([{ amount: 1 }]);
  expect((await ask(olga, "POST", `/v1/limit-requests/${id}/refuse`)).status).toBe(400);
}, 60_000);

test("lets operators raise the quota of an account, and nobody else", async () => {
  const { account } = await ask(olga, "GET", "/v1/session");
  await ask(olga, "PATCH", `/v1/admin/accounts/${account.id}`, { monthly_spend: 10 });
  const admin = await invite(olga, {
    person: { email: "dora@example.test", name: "Dora", password: "velvet anchor prairie two" },
    role: "admin",
  });
  const quota = { unit: "usd", per: "month", owner: "account" };
  const { id } = await ask(admin, "POST", "/v1/limit-requests", { ...quota, amount: 5, reason: "migration" });
  const forbidden = await ask(admin, "POST", `/v1/limit-requests/${id}/grant`, { amount: 5, seconds: hour });
  expect([forbidden.status, forbidden.error.message]).toEqual([403, expect.stringContaining("Only operators")]);
  const { data } = await ask(olga, "GET", "/v1/admin/limit-requests?status=open");
  expect(data.map((one: Answer) => one.id)).toEqual([id]);
  const granted = await ask(olga, "POST", `/v1/admin/limit-requests/${id}/grant`, { amount: 5, seconds: hour });
  expect(granted).toMatchObject({ status: "granted", decision: { amount: 5 } });
  const spend = async () => {
    const { quota } = await ask(olga, "GET", `/v1/admin/accounts/${account.id}`);
    return quota.environments.find(({ environment }: Answer) => environment === "live").spend.limit;
  };
  expect(await spend()).toBe(15);
  clock.shift(hour + 1);
  expect(await spend()).toBe(10);
}, 60_000);
