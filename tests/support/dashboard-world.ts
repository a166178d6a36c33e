// A server with models, people and a month of use, for tests of the dashboard; run by itself, for whoever wants to look at it.
import { SQLiteError, type SQLQueryBindings, Database as Sqlite } from "bun:sqlite";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { SQL } from "bun";
import type { BrowserContext } from "playwright-core";
import { ensureDashboard } from "../../scripts/setup.mjs";
import { membershipCredentialId } from "../../src/domain/people/person.ts";
import { type ApiKeyRecord, newAndUnbounded } from "../../src/domain/principal.ts";
import { openUsageWriter } from "../../src/ledger/usage/usage-writer.ts";
import { apiKeys } from "../../src/storage/tables/credential-rows.ts";
import { type Browser, invitation, invite, type Person, setUp } from "./browser.ts";
import { operator } from "./browser-world.ts";
import * as data from "./dashboard-data.ts";
import { type ModelServers, startModelServers } from "./dashboard-models.ts";
import { startHeadrace, type TestServer, type TestServerOptions, until } from "./headrace.ts";
import { joinNode } from "./joined-node.ts";
import { cookieHeader, testOrigin } from "./people.ts";
import { seeded } from "./seeded.ts";

/** All with the operator's password. */
export const colleagues = {
  admin: { ...operator, email: "grace@example.test", name: "Grace Hopper" },
  member: { ...operator, email: "katherine@example.test", name: "Katherine Johnson" },
} as const satisfies Record<string, Person>;

export interface FillOptions {
  /** 12 by default: one of each kind. */
  keys?: number;
  /** With how many of them requests were made; 8 by default. */
  usedKeys?: number;
  /** Requests over the last 30 days; 6,000 by default. */
  requests?: number;
  chats?: number;
  events?: number;
}

/** For pages that have to stay quick whatever there is. */
export const plenty = { keys: 10_000, requests: 10_000, chats: 400, events: 2_000 } as const satisfies FillOptions;
/** A busy installation, as pages have to stay quick in it on a slow machine; with `busyModels` models. */
export const busy = {
  ...{ keys: 500, usedKeys: 500, requests: 100_000, chats: 400, events: 2_000 },
} as const satisfies FillOptions;
export const busyModels = 50;

export interface Filled {
  keys: readonly ApiKeyRecord[];
  /** Ids of the apps of the account; the first two are allowed by the operator. */
  apps: readonly string[];
}

/** A browser context of Playwright. */
type CookieJar = Pick<BrowserContext, "addCookies">;

export interface DashboardWorld extends AsyncDisposable {
  server: TestServer;
  models: ModelServers;
  /** The operator's, who owns the first account. */
  browser: Browser;
  accountId: string;
  /** Puts somebody, the operator unless said otherwise, into a browser's context as signed in. */
  signIn(context: CookieJar, email?: string): Promise<void>;
  /** Members, keys, apps, usage, chats, refusals and audit events. Once. */
  fill(options?: FillOptions): Promise<Filled>;
}

export interface DashboardWorldOptions extends TestServerOptions {
  /** Pause between two words of a streamed answer; none by default. */
  wordMs?: number;
  /** How many; those of `dashboardModels` by default. */
  modelCount?: number;
}

/** With the dashboard as its sources are now. */
export async function openDashboardWorld(options: DashboardWorldOptions = {}): Promise<DashboardWorld> {
  const { wordMs = 0, modelCount, yaml = "", ...serverOptions } = options;
  ensureDashboard();
  const models = await startModelServers(wordMs, modelCount);
  const server = await startHeadrace({ ...serverOptions, yaml: models.yaml + yaml });
  const browser = await setUp(server, { person: operator });
  const accountId = server.firstKey.record.accountId;
  return {
    ...{ server, models, browser, accountId },
    signIn: (context, email = operator.email) => signIn(server, context, email),
    fill: (wanted = {}) => fill(server, browser, wanted, modelCount),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      await models[Symbol.asyncDispose]();
    },
  };
}

/** A session of their own: one that two browsers share ends for the one as the other renews it. */
export async function signIn(
  { people, url }: Pick<TestServer, "people" | "url">,
  context: CookieJar,
  email: string,
): Promise<void> {
  const person = await people.people.findByEmail(email);
  if (!person) throw new Error(`There is nobody with the address ${email}.`);
  const [membership] = await people.people.membershipsOf(person.id);
  const { cookie } = await people.sessions.start(person, membership?.accountId ?? null, "password", testOrigin);
  const [name = "", value = ""] = cookieHeader(cookie).split("=");
  const site = { url, httpOnly: true, sameSite: "Lax" as const };
  await context.addCookies(
    [url, url.replace("127.0.0.1", "localhost")].map((at) => ({ ...site, name, value, url: at })),
  );
}

async function fill(server: TestServer, browser: Browser, wanted: FillOptions, models?: number): Promise<Filled> {
  const { keys: keyCount = 12, usedKeys = 8, requests = 6_000, chats = 48, events = 160 } = wanted;
  const { accountId } = server.firstKey.record;
  const setting = {
    accountId,
    now: Math.floor(Date.now() / 1000),
    random: seeded(7),
    ...(models === undefined ? {} : { models }),
  };
  await addPeople(browser);
  await addAccounts(browser);
  const apps = await addApps(browser);
  const person = await server.people.people.findByEmail(operator.email);
  const membership = (await server.people.people.membershipsOf(person?.id ?? "")).find(
    (one) => one.accountId === accountId,
  );
  if (!person || !membership) throw new Error("The operator is no member of the first account.");
  const allowed = { ...setting, personId: person.id, parentId: membershipCredentialId(membership.id, "dev") };
  const grants = apps.slice(0, 2).map((appId, i) => grantOf(allowed, appId, (i + 1) * 3 * data.day));
  const keys = data.someKeys(setting, keyCount, person.id);
  const used = keys.slice(0, usedKeys).filter(({ lastUsedAt }) => lastUsedAt !== null);
  const sources = [
    ...used.map(({ id }, i) => ({ keyId: id, appId: null, weight: 10 / (i + 1) })),
    ...grants.map(({ id, appId }) => ({ keyId: id, appId, weight: 2 })),
  ];
  await inTransaction(server.dataDir, (db) => {
    insertRows(db, "api_keys", [...grants, ...keys].map(apiKeys.row));
    insertRows(
      db,
      "refresh_tokens",
      grants.map((grant) => refreshTokenOf(grant, setting.now)),
    );
    insertRows(db, "refusals", data.someRefusals(setting, sources, 60));
    db.run("UPDATE credential_revision SET revision = revision + 1 WHERE id = 1");
  });
  server.governance.changed();
  await addUsage(server.dataDir, data.someUsage(setting, sources, requests));
  await server.governance.chats.insert(data.someChats(setting, sources, chats));
  await server.governance.audit.append(
    data.someEvents(setting, { personId: person.id, keys: keys.slice(0, 12) }, events),
  );
  return { keys, apps };
}

async function addPeople(browser: Browser): Promise<void> {
  await invite(browser, { role: "admin", person: colleagues.admin });
  await invite(browser, { role: "member", person: colleagues.member });
  await invitation(browser, { email: "alan@example.test", role: "member" });
}

async function addAccounts(browser: Browser): Promise<void> {
  for (const [name, tier] of [
    ["Blue Harbour Ltd", "pro"],
    ["Northwind University", "enterprise"],
    ["Trial of Max", "free"],
  ]) {
    await browser.ask("/v1/admin/accounts", { method: "POST", body: { name, tier } });
  }
}

async function addApps(browser: Browser): Promise<string[]> {
  const wanted = [
    { name: "Meeting Notes", homepage_url: "https://notes.example", redirect_uris: ["https://notes.example/callback"] },
    { name: "Desk Assistant", type: "public", redirect_uris: ["http://127.0.0.1/callback"] },
    { name: "Invoice Reader", redirect_uris: ["https://invoices.example/oauth"], scopes: ["chat:write", "usage:read"] },
  ];
  const ids: string[] = [];
  for (const body of wanted) ids.push(String((await browser.ask("/v1/apps", { method: "POST", body }))["id"]));
  return ids;
}

/** One that serves all it has, one that waits for approval, and one that is away. */
async function addNodes(browser: Browser, url: string): Promise<void> {
  const token = async (body: object) =>
    String((await browser.ask("/v1/admin/node-tokens", { method: "POST", body }))["token"]);
  const all = { approved_models: ["*"] };
  await joinNode({ url, token: await token(all), name: "lab-dgx", models: ["lab-large", "lab-embed"] });
  await joinNode({ url, token: await token({}), name: "workstation", models: ["qwen3:8b", "gemma3:4b"] });
  const away = await joinNode({ url, token: await token(all), name: "old-laptop", models: ["phi4"] });
  await away[Symbol.asyncDispose]();
}

interface Allowing extends data.Setting {
  personId: string;
  /** The id of the membership. */
  parentId: string;
}

function grantOf({ accountId, personId, parentId, now }: Allowing, appId: string, age: number): ApiKeyRecord {
  const id = data.idAt("grt", now - age);
  return {
    ...newAndUnbounded,
    ...{
      id,
      limitId: id,
      digest: id,
      kind: "grant",
      accountId,
      personId,
      appId,
      role: null,
      parentId,
      createdBy: personId,
    },
    ...{ name: operator.email, environment: "dev", prefix: "", last4: "", scopes: ["chat:write", "models:read"] },
    ...{ createdAt: now - age, lastUsedAt: now - 900 },
  };
}

/** That it has one keeps a grant alive; nobody has the token. */
function refreshTokenOf({ id, createdAt }: ApiKeyRecord, now: number) {
  return { digest: `nobody has ${id}`, grant_id: id, created_at: createdAt, expires_at: now + 30 * data.day };
}

/** By the server's own writer, so that roll-ups are as they would be. */
async function addUsage(dataDir: string, records: ReturnType<typeof data.someUsage>): Promise<void> {
  const db = new SQL({ adapter: "sqlite", filename: join(dataDir, "headrace.db") });
  const writer = await openUsageWriter(db, { isAlone: false });
  try {
    for (let from = 0; from < records.length; from += 1_000) {
      await writer.insert(records.slice(from, from + 1_000), 10_000);
    }
  } finally {
    writer.close();
    await db.close();
  }
}

/** The server of the same process may be writing: SQLite's own waiting would keep it from ever finishing. */
async function inTransaction(dataDir: string, work: (db: Sqlite) => void): Promise<void> {
  const db = new Sqlite(join(dataDir, "headrace.db"), { readwrite: true });
  try {
    db.run("PRAGMA busy_timeout = 0");
    await until(() => begins(db), "the database is free for a transaction");
    work(db);
    db.run("COMMIT");
  } finally {
    db.close();
  }
}

function begins(db: Sqlite): boolean {
  try {
    db.run("BEGIN IMMEDIATE");
    return true;
  } catch (error) {
    if (error instanceof SQLiteError && error.code?.startsWith("SQLITE_BUSY")) return false;
    throw error;
  }
}

/** All with the members of the first. */
function insertRows(db: Sqlite, table: string, rows: readonly object[]): void {
  const columns = Object.keys(rows[0] ?? {});
  const places = columns.map(() => "?").join(", ");
  const insert = db.prepare(`INSERT INTO ${table} (${columns.join(", ")}) VALUES (${places})`);
  for (const row of rows) insert.run(...(Object.values(row) as SQLQueryBindings[]));
  insert.finalize();
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      port: { type: "string", default: "7700" },
      plenty: { type: "boolean", default: false },
      busy: { type: "boolean", default: false },
      empty: { type: "boolean", default: false },
    },
  });
  const world = await openDashboardWorld({
    ...{ flags: { port: values.port }, wordMs: 30 },
    ...(values.busy ? { modelCount: busyModels } : {}),
  });
  const { server, browser } = world;
  if (!values.empty) {
    await world.fill(values.busy ? busy : values.plenty ? plenty : {});
    await addNodes(browser, server.url);
  }
  process.stdout.write(
    `Dashboard   ${server.url}/\nSign in     ${operator.email}   (operator and owner)\n` +
      (values.empty
        ? ""
        : `            ${colleagues.admin.email}   (admin)\n            ${colleagues.member.email}   (member)\n`) +
      `Password    ${operator.password}\nKey         ${server.key}\nData        ${server.dataDir}\n` +
      "--port <n>  --empty: nothing in it  --plenty: 10,000 keys and log rows  --busy: 500 keys, 50 models, 100,000 requests. Runs until it is ended.\n",
  );
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    process.once(signal, () => void world[Symbol.asyncDispose]().then(() => process.exit(0)));
  }
}
