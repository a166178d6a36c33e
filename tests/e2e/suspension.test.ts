// Suspended people, accounts, keys and apps at two replicas: all that runs stops within a second, and all works again.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { type Browser, invite, setUp, signIn } from "../support/browser.ts";
import { type GatedUpstream, startGatedUpstream } from "../support/gated-upstream.ts";
import { type TestServer, until } from "../support/headrace.ts";
import { askAsApp, refreshFields, registerApp, signInTo } from "../support/oauth-apps.ts";
import { adminOf } from "../support/operated.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { startReplicas, type TestReplicas } from "../support/replicas.ts";
import { upstreamYaml } from "../support/scripted-upstream.ts";

/** Without Redis, a replica learns of a suspension by its poll of the database, twice a second. */
const boundMs = 1_000;
const ada = { email: "ada@example.test", name: "Ada", password: "brisk willow lantern nine" };
const scopes = ["chat:write", "models:read", "tools:use"];

let upstream: GatedUpstream;
let all: TestReplicas;
let olga: Browser;
let member: Browser;

beforeAll(async () => {
  upstream = await startGatedUpstream();
  all = await startReplicas({ yaml: upstreamYaml(upstream) });
  olga = await setUp(all);
  member = await invite(olga, { person: ada });
}, 60_000);

afterAll(async () => {
  await all[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

const personId = async () => (await member.ask("/v1/session"))["person"] as { id: string };
const statusesOf = (credential: string) =>
  Promise.all(
    all.servers.map(async ({ url }) => {
      const headers = { authorization: `Bearer ${credential}` };
      return (await fetch(`${url}/v1/models`, { headers })).status;
    }),
  );

/** A stream at each replica that has said one word and goes on. */
async function openStreams(credential: string): Promise<Promise<string>[]> {
  const before = upstream.open();
  const answers = all.servers.map(({ url }) =>
    fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${credential}`, "content-type": "application/json" },
      body: JSON.stringify({ model: "upstream-model", stream: true, messages: [{ role: "user", content: "x" }] }),
    }).then((response) => response.text()),
  );
  await until(() => upstream.open() === before + answers.length, "both streams are open");
  upstream.say("word ");
  return answers;
}

async function connectMcp(credential: string): Promise<Client> {
  const headers = { authorization: `Bearer ${credential}` };
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "legacy" } });
  const url = new URL(`${all.servers[1]?.url}/mcp`);
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }));
  return client;
}

/** Waits for the end of both streams, and returns the milliseconds since `sinceMs`. */
async function ended(streams: readonly Promise<string>[], sinceMs: number): Promise<number> {
  for (const text of await Promise.all(streams)) {
    expect(text).toContain("word ");
    expect(text).toContain("suspended");
    expect(text).not.toContain("[DONE]");
  }
  return performance.now() - sinceMs;
}

test("stops and resumes a person's sessions, key, app, MCP session and streams at both replicas", async () => {
  const { key } = (await member.ask("/v1/keys", { method: "POST", body: { name: "Own", scopes } })) as { key: string };
  const app = await registerApp({ url: all.url, key: all.key }, { scopes: ["chat:write", "models:read"] });
  const tokens = await signInTo(app, all, member);
  const mcp = await connectMcp(key);
  expect((await mcp.listTools()).tools).toEqual([]);
  const streams = [...(await openStreams(key)), ...(await openStreams(tokens.access_token))];
  const { id } = await personId();

  const answer = await olga.ask(`/v1/admin/people/${id}/suspend`, { method: "POST" });
  const suspendedAt = performance.now();
  expect(answer["suspended_at"]).toBeNumber();
  expect(await ended(streams, suspendedAt)).toBeLessThan(boundMs);
  for (const credential of [key, tokens.access_token]) {
    await until(async () => Bun.deepEquals(await statusesOf(credential), [401, 401]), "refused at both", boundMs);
  }
  const refused = await fetch(`${all.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  expect(await refused.text()).toContain("its owner is suspended");
  await expect(mcp.listTools()).rejects.toThrow();
  for (const _ of all.servers) {
    const session = await member.request("/v1/session");
    expect([session.status, await session.text()]).toEqual([403, expect.stringContaining("You are suspended")]);
  }
  for (const _ of all.servers) {
    const refreshed = await askAsApp(all.url, "token", app, refreshFields(tokens.refresh_token));
    expect(refreshed.body["error"]).toBe("temporarily_unavailable");
  }
  await member.open("/sign-in");
  await signIn(member, ada);
  expect([member.page.status, member.page.text]).toEqual([403, expect.stringContaining("You are suspended")]);

  await olga.ask(`/v1/admin/people/${id}/resume`, { method: "POST" });
  for (const credential of [key, tokens.access_token]) {
    await until(async () => Bun.deepEquals(await statusesOf(credential), [200, 200]), "accepted at both", boundMs);
  }
  expect(await personId()).toMatchObject({ id });
  expect((await askAsApp(all.url, "token", app, refreshFields(tokens.refresh_token))).status).toBe(200);
  const again = await connectMcp(key);
  expect((await again.listTools()).tools).toEqual([]);
  await again.close();
  await mcp.close().catch(() => {});
  const actions = (await olga.ask(`/v1/admin/audit?target=${id}`))["data"] as { action: string }[];
  expect(actions.map(({ action }) => action).slice(0, 2)).toEqual(["person.resumed", "person.suspended"]);
}, 60_000);

test.each(["key", "app", "account"])(
  "stops the streams of a suspended %s at both replicas, and resumes it",
  async (what) => {
    const { account, key, keyId } = await otherAccount();
    let [credential, path] = [key, `/v1/admin/keys/${keyId}`];
    if (what === "app") {
      const app = await registerApp({ url: all.url, key: all.key }, { scopes: ["chat:write", "models:read"] });
      credential = (await signInTo(app, all, member)).access_token;
      path = `/v1/admin/apps/${app.id}`;
    } else if (what === "account") path = `/v1/admin/accounts/${account}`;
    const streams = await openStreams(credential);
    expect(await olga.ask(`${path}/suspend`, { method: "POST" })).toMatchObject({ status: "suspended" });
    const suspendedAt = performance.now();
    expect(await ended(streams, suspendedAt)).toBeLessThan(boundMs);
    await until(async () => Bun.deepEquals(await statusesOf(credential), [401, 401]), "refused at both", boundMs);
    expect(await olga.ask(`${path}/resume`, { method: "POST" })).toMatchObject({ status: "active" });
    await until(async () => Bun.deepEquals(await statusesOf(credential), [200, 200]), "accepted at both", boundMs);
    const again = await openStreams(credential);
    upstream.finish();
    for (const text of await Promise.all(again)) expect(text).toContain("[DONE]");
  },
  60_000,
);

test("lets the streams of other callers go on when a key is suspended", async () => {
  const { key, keyId } = await otherAccount();
  const others = await openStreams(all.key);
  await olga.ask(`/v1/admin/keys/${keyId}/suspend`, { method: "POST" });
  await until(async () => Bun.deepEquals(await statusesOf(key), [401, 401]), "refused at both", boundMs);
  upstream.finish();
  for (const text of await Promise.all(others)) expect(text).toContain("[DONE]");
});

test("lets only the operators' endpoint resume a key that an operator suspended", async () => {
  const made = await olga.ask("/v1/keys", { method: "POST", body: { name: "Abused", scopes } });
  await olga.ask(`/v1/admin/keys/${made["id"]}/suspend`, { method: "POST" });
  expect((await olga.request(`/v1/keys/${made["id"]}/resume`, { method: "POST" })).status).toBe(403);
  expect(await olga.ask(`/v1/keys/${made["id"]}/suspend`, { method: "POST" })).toMatchObject({ status: "suspended" });
  await olga.ask(`/v1/admin/keys/${made["id"]}/resume`, { method: "POST" });
  expect(await olga.ask(`/v1/keys/${made["id"]}`)).toMatchObject({ status: "active" });
});

test("refuses to suspend the last operator, also with another operator's key, and oneself", async () => {
  const { id } = (await olga.ask("/v1/session"))["person"] as { id: string };
  const answer = await olga.request(`/v1/admin/people/${id}/suspend`, { method: "POST" });
  expect([answer.status, await answer.text()]).toEqual([403, expect.stringContaining("cannot suspend yourself")]);
  const [first] = all.servers as [TestServer, TestServer];
  const operator = await makeOperatorKey(first.dataDir, [], all.env);
  const last = await adminOf(first, operator)("POST", `/people/${id}/suspend`);
  expect([last.status, last.body.error.message]).toEqual([403, expect.stringContaining("last operator")]);
});

async function otherAccount(): Promise<{ account: string; key: string; keyId: string }> {
  const { id } = (await olga.ask("/v1/admin/accounts", { method: "POST", body: { name: "Other" } })) as { id: string };
  const body = { name: "Key", environment: "live", scopes };
  const made = await olga.ask(`/v1/admin/accounts/${id}/keys`, { method: "POST", body });
  return { account: id, key: String(made["key"]), keyId: String(made["id"]) };
}

test("lists and revokes all keys that a person made in the account, and keeps those of others", async () => {
  const bob = await invite(olga, { person: { ...ada, email: "bob@example.test", name: "Bob" } });
  const { id } = (await bob.ask("/v1/session"))["person"] as { id: string };
  const make = async (browser: Browser, name: string) =>
    (await browser.ask("/v1/keys", { method: "POST", body: { name, scopes } })) as { id: string; key: string };
  const made = [await make(bob, "One"), await make(bob, "Two")];
  const other = await make(olga, "Other");
  const listed = (await olga.ask(`/v1/keys?made_by=${id}`))["data"] as { id: string }[];
  expect(listed.map((key) => key.id).sort()).toEqual(made.map((key) => key.id).sort());
  const ended = await olga.ask("/v1/keys/revoke", { method: "POST", body: { made_by: id } });
  expect((ended["revoked"] as string[]).sort()).toEqual(made.map((key) => key.id).sort());
  for (const { key } of made)
    await until(async () => Bun.deepEquals(await statusesOf(key), [401, 401]), "ended", boundMs);
  expect(await statusesOf(other.key)).toEqual([200, 200]);
  expect((await bob.request("/v1/keys/revoke", { method: "POST", body: { made_by: other.id } })).status).toBe(200);
  expect(await statusesOf(other.key)).toEqual([200, 200]);
});
