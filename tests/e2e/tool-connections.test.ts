// People connect their own accounts at an MCP server, through a running Headrace and a real authorization server.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import {
  changingMcpServers,
  type OAuthMcpServer,
  personalMcpServer,
  startOAuthMcpServer,
} from "../support/oauth-mcp-server.ts";
import { operated } from "../support/operated.ts";
import { openServerPeople, type ServerPeople, type SignedInMember } from "../support/server-people.ts";

let upstream: OAuthMcpServer;
let servers: ReturnType<typeof changingMcpServers>;
let server: TestServer;
let people: ServerPeople;
let anna: SignedInMember;
let ben: SignedInMember;

beforeEach(async () => {
  upstream = startOAuthMcpServer();
  servers = changingMcpServers([personalMcpServer("crm", upstream.url)]);
  server = await startHeadrace({ mcpServers: servers.all });
  people = openServerPeople(server);
  anna = await people.addMember("member");
  ben = await people.addMember("member");
});

afterEach(async () => {
  await people.close();
  await server[Symbol.asyncDispose]();
  await upstream.close();
});

const as = ({ headers }: SignedInMember) => ({ ...headers, "content-type": "application/json" });

const begin = (member: SignedInMember, name = "crm") =>
  fetch(`${server.url}/v1/tools/connections`, {
    method: "POST",
    headers: as(member),
    body: JSON.stringify({ server: name }),
  });

async function urlOf(answer: Response): Promise<string> {
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { url: string }).url;
}

const back = (url: string, { reading }: Pick<SignedInMember, "reading">) =>
  fetch(url, { headers: reading, redirect: "manual" });

async function connect(member: SignedInMember, user: string): Promise<void> {
  const page = await back(upstream.allow(await urlOf(await begin(member)), user), member);
  expect(await page.text()).toContain("Your account is connected");
  expect(page.status).toBe(200);
}

const of = ({ person, membership }: SignedInMember) => ({ accountId: membership.accountId, personId: person.id });
const tokenOf = (member: SignedInMember) => server.personConnections.accessToken("crm", of(member));

async function listed({ reading }: SignedInMember) {
  const answer = await fetch(`${server.url}/v1/tools/connections`, { headers: reading });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { data: { server: string; state: string; broken_because: string | null }[] }).data;
}

/** Takes what it is asked, and never answers. */
async function silentServer() {
  let asked = 0;
  const site = Bun.serve({
    ...{ hostname: "127.0.0.1", port: 0, idleTimeout: 0 },
    fetch() {
      asked++;
      return new Promise<Response>(() => {});
    },
  });
  return { url: site.url.origin, asked: () => asked, [Symbol.asyncDispose]: () => site.stop(true) };
}

async function errorOf(answer: Response): Promise<{ status: number; message: string }> {
  const { error } = (await answer.json()) as { error: { message: string } };
  return { status: answer.status, message: error.message };
}

test("uses two people's own accounts at an MCP server, shows no token, and registers one client", async () => {
  expect(await tokenOf(anna)).toBeUndefined();
  await connect(anna, "anna@crm");
  await connect(ben, "ben@crm");
  const tokens = [await tokenOf(anna), await tokenOf(ben)];
  expect(await Promise.all(tokens.map((token) => upstream.whoIs(token)))).toEqual(["anna@crm", "ben@crm"]);
  expect(upstream.state.counts).toMatchObject({ registered: 1, redeemed: 2 });
  expect(await listed(anna)).toMatchObject([{ server: "crm", state: "connected" }]);
  const seen = JSON.stringify([await listed(anna), await listed(ben)]) + server.logText();
  const rows: object[] = await people.db`SELECT * FROM tool_connections`;
  const stored = JSON.stringify([rows, await people.db`SELECT * FROM audit_log`]);
  for (const token of tokens) expect(`${seen}${stored}`).not.toContain(token ?? "none");
  const audited: { action: string }[] = await people.db`
    SELECT action FROM audit_log WHERE action = 'tool_connection.created'`;
  expect(audited).toHaveLength(2);
});

test("refuses a callback begun in another session, and a repeated one", async () => {
  const url = upstream.allow(await urlOf(await begin(anna)), "mallory@crm");
  const stolen = await back(url, ben);
  expect([stolen.status, await stolen.text()]).toEqual([400, expect.stringContaining("was not begun in this browser")]);
  expect((await back(url, anna)).status).toBe(400);
  const nobody = await back(upstream.allow(await urlOf(await begin(anna)), "anna@crm"), { reading: {} });
  expect(nobody.status).toBe(400);
  expect([await tokenOf(anna), await tokenOf(ben)]).toEqual([undefined, undefined]);
  expect(upstream.state.counts.redeemed).toBe(0);
});

test("redeems no code from another authorization server or without the announced issuer", async () => {
  for (const iss of ["https://other.example", null]) {
    upstream.state.says = { iss };
    const page = await back(upstream.allow(await urlOf(await begin(anna)), "anna@crm"), anna);
    expect([page.status, await page.text()]).toEqual([502, expect.stringContaining("another authorization server")]);
  }
  expect(upstream.state.counts.redeemed).toBe(0);
  expect(await tokenOf(anna)).toBeUndefined();
});

test("refuses to connect a server that gives false metadata or leads into the internal network", async () => {
  const inside = "https://10.0.0.1";
  const lies = [
    { resource: { resource: "https://other.example/mcp" } },
    { resource: { authorization_servers: [] } },
    { resource: { authorization_servers: [inside] } },
    { resource: { authorization_servers: ["http://169.254.169.254"] } },
    { authorization: { issuer: "https://other.example" } },
    { authorization: { token_endpoint: "http://other.example/token" } },
    { authorization: { authorization_endpoint: "javascript:alert(1)" } },
    { authorization: { registration_endpoint: `${inside}/register` } },
    { authorization: { code_challenge_methods_supported: ["plain"] } },
  ];
  for (const says of lies) {
    upstream.state.says = says;
    const { status, message } = await errorOf(await begin(anna));
    expect([says, status]).toEqual([says, 502]);
    expect(message).not.toContain("10.0.0.1");
  }
});

test("reports a declined connection to the person, and refuses servers without personal connections", async () => {
  const asked = new URL(await urlOf(await begin(anna))).searchParams;
  const iss = encodeURIComponent(upstream.origin);
  const declined = `${asked.get("redirect_uri")}?error=access_denied&state=${asked.get("state")}&iss=${iss}`;
  const page = await back(declined, anna);
  expect([page.status, await page.text()]).toEqual([403, expect.stringContaining("declined it there")]);
  expect((await begin(anna, "nothing")).status).toBe(404);
  servers.set([personalMcpServer("crm", upstream.url, { accounts: ["acct_other"] })]);
  expect((await begin(anna)).status).toBe(404);
  expect(await listed(anna)).toEqual([]);
});

test("keeps a connection visible and removable if its server moved, is forbidden or is gone", async () => {
  await connect(anna, "anna@crm");
  const token = await tokenOf(anna);
  servers.set([personalMcpServer("crm", "https://elsewhere.example/mcp")]);
  expect(await listed(anna)).toMatchObject([
    { server: "crm", state: "broken", broken_because: expect.stringContaining("another address") },
  ]);
  servers.set([personalMcpServer("crm", upstream.url, { accounts: ["acct_other"] })]);
  const unused = [{ server: "crm", title: null, state: "unused", issuer: upstream.origin, broken_because: null }];
  expect(await listed(anna)).toMatchObject(unused);
  expect(await listed(ben)).toEqual([]);
  servers.set([]);
  expect(await listed(anna)).toMatchObject(unused);
  await fetch(`${server.url}/v1/tools/connections/crm`, { method: "DELETE", headers: as(anna) });
  expect([await listed(anna), await upstream.whoIs(token)]).toEqual([[], undefined]);
});

test("deletes and revokes tokens when a connection ends", async () => {
  await connect(anna, "anna@crm");
  const token = await tokenOf(anna);
  const ended = await fetch(`${server.url}/v1/tools/connections/crm`, { method: "DELETE", headers: as(anna) });
  expect(await ended.json()).toMatchObject({ server: "crm", deleted: true, revoked: true });
  expect([await tokenOf(anna), await upstream.whoIs(token)]).toEqual([undefined, undefined]);
  const again = await fetch(`${server.url}/v1/tools/connections/crm`, { method: "DELETE", headers: as(anna) });
  expect(again.status).toBe(404);
});

test("revokes a person's tokens when the person leaves the account or is deleted", async () => {
  const { admin } = await operated(server);
  const owner = await people.addMember("owner");
  await connect(anna, "anna@crm");
  await connect(ben, "ben@crm");
  const [annas, bens] = [await tokenOf(anna), await tokenOf(ben)];
  const removed = await fetch(`${server.url}/v1/members/${anna.membership.id}`, {
    method: "DELETE",
    headers: as(owner),
  });
  expect(removed.status).toBe(200);
  await until(async () => (await upstream.whoIs(annas)) === undefined, "her token is revoked");
  expect(await upstream.whoIs(bens)).toBe("ben@crm");
  expect((await admin("DELETE", `/people/${ben.person.id}`)).status).toBe(200);
  await until(async () => (await upstream.whoIs(bens)) === undefined, "his token is revoked");
});

test("revokes connected tokens when an operator deletes or moves the server", async () => {
  const { admin } = await operated(server);
  servers.set([]);
  await admin("POST", "/tool-servers", { name: "crm", url: upstream.url, oauth: {} });
  await connect(anna, "anna@crm");
  await connect(ben, "ben@crm");
  const first = [await tokenOf(anna), await tokenOf(ben)];
  await admin("PATCH", "/tool-servers/crm", { title: "Customers" });
  expect(upstream.state.counts.revoked).toBe(0);
  await using elsewhere = await silentServer();
  expect((await admin("PATCH", "/tool-servers/crm", { url: elsewhere.url })).status).toBe(200);
  await until(() => upstream.state.counts.revoked === 2, "both are revoked");
  expect(await Promise.all(first.map((token) => upstream.whoIs(token)))).toEqual([undefined, undefined]);
  await admin("PATCH", "/tool-servers/crm", { url: upstream.url });
  await connect(anna, "anna@crm");
  const second = await tokenOf(anna);
  expect(await upstream.whoIs(second)).toBe("anna@crm");
  expect((await admin("DELETE", "/tool-servers/crm")).status).toBe(200);
  await until(async () => (await upstream.whoIs(second)) === undefined, "hers is revoked");
  expect(upstream.state.counts.revoked).toBe(3);
  await until(() => server.logText().includes("tool_tokens_revoked"), "the log says so");
  for (const token of [...first, second]) expect(server.logText()).not.toContain(token ?? "none");
});

test("does not make an operator wait for a silent authorization server", async () => {
  const { admin } = await operated(server);
  servers.set([]);
  await admin("POST", "/tool-servers", { name: "crm", url: upstream.url, oauth: {} });
  await using silent = await silentServer();
  upstream.state.says = { authorization: { revocation_endpoint: `${silent.url}/revoke` } };
  await connect(anna, "anna@crm");
  const before = performance.now();
  expect((await admin("DELETE", "/tool-servers/crm")).status).toBe(200);
  expect(performance.now() - before).toBeLessThan(2_000);
  await until(() => silent.asked() === 1, "it is asked");
});

test("ends a connection with its membership or server, and sends its token to no other address", async () => {
  await connect(anna, "anna@crm");
  await connect(ben, "ben@crm");
  await people.removeMembership(anna.membership);
  expect([await tokenOf(anna), await tokenOf(ben)]).toEqual([undefined, expect.any(String)]);
  const [here] = servers.all();
  servers.set([personalMcpServer("crm", "https://elsewhere.example/mcp")]);
  expect(await tokenOf(ben)).toBeUndefined();
  servers.set(here ? [here] : []);
  expect(await tokenOf(ben)).toBeString();
  const { admin } = await operated(server);
  servers.set([]);
  await admin("POST", "/tool-servers", { name: "crm", url: upstream.url, oauth: {} });
  expect(await tokenOf(ben)).toBeString();
  const rows = async () => ((await people.db`SELECT id FROM tool_connections`) as object[]).length;
  await admin("PATCH", "/tool-servers/crm", { title: "Customers" });
  expect(await rows()).toBe(1);
  await admin("DELETE", "/tool-servers/crm");
  expect(await rows()).toBe(0);
});

test("connects nothing for a person whose membership ended before the callback, and revokes the tokens", async () => {
  const url = upstream.allow(await urlOf(await begin(anna)), "anna@crm");
  await people.removeMembership(anna.membership);
  expect((await back(url, anna)).status).toBe(401);
  expect(upstream.state.counts).toMatchObject({ redeemed: 1, revoked: 1 });
});

test("stops using tokens of a former authorization server once an operator names another", async () => {
  await connect(anna, "anna@crm");
  const begun = upstream.allow(await urlOf(await begin(ben)), "ben@crm");
  const naming = (issuer: string) =>
    servers.set([
      personalMcpServer("crm", upstream.url, {
        credentials: { kind: "person", issuer, clientId: null, clientSecret: null, scopes: null },
      }),
    ]);
  naming("https://login.example");
  expect(await tokenOf(anna)).toBeUndefined();
  expect(await listed(anna)).toMatchObject([
    { state: "broken", broken_because: "The server has another authorization server now, to which no token goes." },
  ]);
  expect((await back(begun, ben)).status).toBe(404);
  expect((await begin(anna)).status).toBe(502);
  naming(`${upstream.origin}/`);
  expect([await tokenOf(anna), await listed(anna)]).toMatchObject([expect.any(String), [{ state: "connected" }]]);
});

test("ends a connection when its server's origin or OAuth client changes", async () => {
  servers.set([]);
  const { admin } = await operated(server);
  await admin("POST", "/tool-servers", { name: "crm", url: upstream.url, oauth: {} });
  for (const change of [
    { url: "https://elsewhere.example/mcp" },
    { oauth: { client_id: "another" } },
    { oauth: null },
  ]) {
    await connect(anna, "anna@crm");
    expect((await admin("PATCH", "/tool-servers/crm", change)).status).toBe(200);
    expect(await people.db`SELECT id FROM tool_connections`).toEqual([]);
    const before = { url: upstream.url, oauth: { client_id: null } };
    expect((await admin("PATCH", "/tool-servers/crm", before)).status).toBe(200);
  }
});

test("shows connected people to operators only", async () => {
  await connect(anna, "anna@crm");
  const path = `${server.url}/v1/admin/tools/connections?server=crm`;
  const operator = await people.addMember("owner", { isOperator: true });
  const seen = (await (await fetch(path, { headers: operator.reading })).json()) as { data: object[] };
  expect(seen.data).toMatchObject([{ server: "crm", person_id: anna.person.id, state: "connected" }]);
  expect((await fetch(path, { headers: ben.reading })).status).toBe(403);
});

test("refuses the callback at another path than that of the server, which another server's client would use", async () => {
  for (const path of ["/oauth/tools/callback", "/oauth/tool-callbacks/wiki"]) {
    const url = new URL(upstream.allow(await urlOf(await begin(anna)), "anna@crm"));
    expect(url.pathname).toBe("/oauth/tool-callbacks/crm");
    url.pathname = path;
    const page = await back(url.href, anna);
    expect([page.status, await page.text()]).toEqual([502, expect.stringContaining("another authorization server")]);
  }
  expect(upstream.state.counts.redeemed).toBe(0);
  await connect(anna, "anna@crm");
});

test("refuses a connection by a command line login, and serves a client document with its own address", async () => {
  const login = await people.allow(anna);
  const refused = await fetch(`${server.url}/v1/tools/connections`, {
    method: "POST",
    headers: { ...login.headers, "content-type": "application/json" },
    body: JSON.stringify({ server: "crm" }),
  });
  expect(await errorOf(refused)).toMatchObject({ status: 403 });
  const url = `${server.url}/.well-known/oauth-client/crm`;
  expect(await (await fetch(url)).json()).toMatchObject({ client_id: url, token_endpoint_auth_method: "none" });
});

test("serves the client document of older connections with a redirect URI that completes no sign-in", async () => {
  const url = `${server.url}/.well-known/oauth-client/headrace.json`;
  const document = (await (await fetch(url)).json()) as { client_id: string; redirect_uris: string[] };
  expect(document).toMatchObject({ client_id: url, grant_types: ["authorization_code", "refresh_token"] });
  const [redirectUri = ""] = document.redirect_uris;
  expect(redirectUri).not.toBe(`${server.url}/oauth/tools/callback`);
  const returned = new URL(upstream.allow(await urlOf(await begin(anna)), "anna@crm"));
  returned.pathname = new URL(redirectUri).pathname;
  const page = await back(returned.href, anna);
  expect([page.status, await page.text()]).toEqual([502, expect.stringContaining("another authorization server")]);
  expect((await fetch(`${server.url}/.well-known/oauth-client/other.json`)).status).toBe(404);
});
