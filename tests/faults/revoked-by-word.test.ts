// Everything that ends a credential at one replica ends it at another that reaches Redis alone, by word of what changed; all others go on.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { type Browser, invite, setUp } from "../support/browser.ts";
import { type CutLink, startCutLink } from "../support/cut-link.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { type LoadBalancer, startLoadBalancer } from "../support/load-balancer.ts";
import { type RegisteredApp, registerApp, signInTo } from "../support/oauth-apps.ts";
import { freshDatabase } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";

/** A sixth of the usual. */
const databaseBounds = { readMs: 1_000, transactionMs: 1_300, statementMs: 800, lockMs: 650, idleInTransactionMs: 500 };
const stack: AsyncDisposable[] = [];
let redis: RedisServer;
let link: CutLink;
let balancer: LoadBalancer;
let whole: TestServer;
let cutOff: TestServer;
let olga: Browser;

beforeAll(async () => {
  const url = await freshDatabase();
  [redis, link] = await Promise.all([startRedis(), startCutLink(Number(new URL(url).port))]);
  balancer = startLoadBalancer();
  const through = new URL(url);
  through.port = String(link.port);
  const secret = randomBytes(32).toString("hex");
  const start = (databaseUrl: string) =>
    startHeadrace({
      databaseBounds,
      flags: { mode: "production", publicUrl: balancer.url },
      env: { HEADRACE_DATABASE_URL: databaseUrl, HEADRACE_SECRET: secret, HEADRACE_REDIS_URL: redis.url },
    });
  whole = await start(url);
  cutOff = await start(through.href);
  stack.push(redis, link, balancer, whole, cutOff);
  balancer.servers = [whole.url];
  olga = await setUp({ url: balancer.url, setupLink: whole.setupLink });
});

afterAll(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

const statusOf = async (credential: string) =>
  (await fetch(`${cutOff.url}/v1/models`, { headers: { authorization: `Bearer ${credential}` } })).status;

interface MadeKey {
  id: string;
  key: string;
}
const makeKey = async (by: Browser, path = "/v1/keys", more: object = {}) =>
  (await by.ask(path, { method: "POST", body: { name: "x", ...more } })) as unknown as MadeKey;

interface Ending {
  what: string;
  /** The credential that ends, and what ends it. */
  prepare(): Promise<{ credential: string; end(): Promise<unknown> }>;
}

async function allowedApp(): Promise<{ app: RegisteredApp; credential: string }> {
  const app = await registerApp({ url: whole.url, key: whole.key });
  const { access_token } = await signInTo(app, { url: balancer.url }, olga);
  return { app, credential: String(access_token) };
}

const endings: Ending[] = [
  {
    what: "a key that is revoked",
    async prepare() {
      const { id, key } = await makeKey(olga);
      return { credential: key, end: () => olga.ask(`/v1/keys/${id}`, { method: "DELETE" }) };
    },
  },
  {
    what: "a key whose maker is revoked",
    async prepare() {
      const maker = await makeKey(olga, "/v1/keys", { scopes: ["keys:manage", "models:read"] });
      const answer = await whole.request("/v1/keys", {
        body: { name: "child", scopes: ["models:read"] },
        headers: { authorization: `Bearer ${maker.key}` },
      });
      const { key } = (await answer.json()) as MadeKey;
      return { credential: key, end: () => olga.ask(`/v1/keys/${maker.id}`, { method: "DELETE" }) };
    },
  },
  {
    what: "a key that is rotated without an overlap",
    async prepare() {
      const { id, key } = await makeKey(olga);
      const rotate = { method: "POST", body: { overlap_seconds: 0 } };
      return { credential: key, end: () => olga.ask(`/v1/keys/${id}/rotate`, rotate) };
    },
  },
  {
    what: "a key of an account that is suspended",
    async prepare() {
      const { id } = await olga.ask("/v1/admin/accounts", { method: "POST", body: { name: "Shop", tier: "pro" } });
      const { key } = await makeKey(olga, `/v1/admin/accounts/${id}/keys`, { environment: "live" });
      const suspend = { method: "PATCH", body: { status: "suspended" } };
      return { credential: key, end: () => olga.ask(`/v1/admin/accounts/${id}`, suspend) };
    },
  },
  {
    what: "a member's own key, when the member is removed",
    async prepare() {
      const person = { email: "ada@example.test", name: "Ada", password: "brisk willow lantern nine" };
      const ada = await invite(olga, { person });
      const { key } = await makeKey(ada);
      const { data } = (await olga.ask("/v1/members")) as { data: { id: string; email: string }[] };
      const id = data.find(({ email }) => email === person.email)?.id;
      return { credential: key, end: () => olga.ask(`/v1/members/${id}`, { method: "DELETE" }) };
    },
  },
  {
    what: "an app's token, when the app is deleted",
    async prepare() {
      const { app, credential } = await allowedApp();
      return { credential, end: () => whole.request(`/v1/apps/${app.id}`, { method: "DELETE" }) };
    },
  },
  {
    what: "an app's token, when the person takes back what was allowed",
    async prepare() {
      const { credential, app } = await allowedApp();
      const { data } = (await olga.ask("/v1/authorizations")) as { data: { id: string; app: { id: string } }[] };
      const id = data.find((one) => JSON.stringify(one).includes(app.id))?.id;
      return { credential, end: () => olga.ask(`/v1/authorizations/${id}`, { method: "DELETE" }) };
    },
  },
];

// hardening: F32
test("refuses every credential revoked at one replica at another that reaches Redis alone, and accepts the others", async () => {
  const bystander = (await makeKey(olga)).key;
  const prepared = [];
  for (const { what, prepare } of endings) prepared.push({ what, ...(await prepare()) });
  for (const { what, credential } of prepared) expect([what, await statusOf(credential)]).toEqual([what, 200]);
  expect(await statusOf(bystander)).toBe(200);
  link.cut();
  await until(
    async () => (await (await fetch(`${cutOff.url}/readyz`)).json()).checks.database === "failed",
    "it is away",
  );
  for (const { what, credential, end } of prepared) {
    expect([what, await statusOf(credential)]).toEqual([what, 200]);
    await end();
    await until(async () => (await statusOf(credential)) === 503, `refused: ${what}`);
    expect([what, await statusOf(bystander)]).toEqual([what, 200]);
  }
  link.mend();
  for (const { credential } of prepared) await until(async () => (await statusOf(credential)) === 401, "it is back");
  expect(await statusOf(bystander)).toBe(200);
}, 60_000);
