// The canary of people and apps: what signs them in goes through every kind of success and error, and turns up nowhere else.
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Collector, startCollector } from "../support/collector.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { clientId, clientSecret, type LyingProvider, startLyingProvider } from "../support/identity-provider.ts";
import { SoftwareAuthenticator } from "../support/software-authenticator.ts";
import { answered, authorizePath, formOf } from "./authorize-server.ts";
import { filesIn } from "./data-files.ts";
import { backupOf, doctorOf, metricsOf } from "./elsewhere.ts";

const verifier = "CANARYVERIFIER".repeat(4);
const challenge = createHash("sha256").update(verifier).digest("base64url");
const redirectUri = "https://notes.example/callback";
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";
const passwords = ["CANARY first password", "CANARY second password", "CANARY guest password", "CANARY reset password"];
const [first = "", second = "", guests = "", third = ""] = passwords;

let provider: LyingProvider;
let collector: Collector;
let server: TestServer;
let yaml = "";
/** By what they are: what must be in no log, file, table or error. */
const secrets = new Map<string, string>();
/** What was answered to requests that misuse them, headers but cookies as well. */
let shown = "";
let cookie = "";
let csrf = "";

beforeAll(async () => {
  provider = await startLyingProvider();
  const sso = `{ name: Works, issuer: "${provider.issuer}", client_id: ${clientId}, client_secret: ${clientSecret}, allowed_domains: [works.example] }`;
  collector = startCollector();
  yaml = `sso: ${sso}\ntracing: { endpoint: "${collector.url}" }\n`;
  server = await startHeadrace({ yaml });
  secrets.set("single sign-on's client secret", clientSecret);
  passwords.forEach((password, i) => {
    secrets.set(`password ${i}`, password);
  });
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await provider[Symbol.asyncDispose]();
  await collector[Symbol.asyncDispose]();
});

function keep(what: string, secret: string | null | undefined): string {
  if (!secret || secret.length < 8) throw new Error(`There is no ${what}.`);
  secrets.set(what, secret);
  return secret;
}

type Sent = { body?: unknown; headers?: Record<string, string>; as?: string };

/** Sends as a browser or app does; a form where the body is one, else JSON. */
async function send(method: string, path: string, { body, headers = {}, as = "" }: Sent = {}): Promise<Response> {
  const isForm = body instanceof URLSearchParams;
  const type = isForm ? "application/x-www-form-urlencoded" : "application/json";
  const response = await fetch(server.url + path, {
    method,
    redirect: "manual",
    headers: {
      ...(method === "GET" ? {} : { origin: server.url, "x-csrf-token": csrf }),
      ...(as === "" ? {} : { cookie: as }),
      ...(body === undefined ? {} : { "content-type": type }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: isForm ? body.toString() : JSON.stringify(body) }),
  });
  const set = response.headers.get("set-cookie")?.split(";")[0] ?? "";
  const value = set.slice(set.indexOf("=") + 1);
  if (value !== "") secrets.set(`${set.split("=")[0]} of ${method} ${path.slice(0, 20)} ${secrets.size}`, value);
  return response;
}

const form = (fields: Record<string, string>) => new URLSearchParams(fields);
const post = (path: string, fields: Record<string, string>, more: Sent = {}) =>
  send("POST", path, { body: form(fields), ...more });

async function json(method: string, path: string, body?: unknown, more: Sent = {}): Promise<Record<string, string>> {
  const response = await send(method, path, { body, as: cookie, ...more });
  expect([path, response.status]).toEqual([path, 200]);
  return (await response.json()) as Record<string, string>;
}

function cookieOf(response: Response): string {
  expect(response.status).toBe(303);
  return response.headers.get("set-cookie")?.split(";")[0] ?? "";
}

/** The app's tokens, by whatever grant. */
async function redeem(what: string, fields: Record<string, string>, app: { id: string; secret?: string }) {
  const client = { client_id: app.id, ...(app.secret === undefined ? {} : { client_secret: app.secret }) };
  const response = await post("/oauth/token", { ...fields, ...client });
  expect([what, response.status]).toEqual([what, 200]);
  const tokens = (await response.json()) as Record<string, string>;
  return {
    access: keep(`${what}: access token`, tokens["access_token"]),
    refresh: keep(`${what}: refresh token`, tokens["refresh_token"]),
  };
}

const app: { id: string; secret: string } = { id: "", secret: "" };

test("signs people in by set-up link, password, invitation, passkey and single sign-on with marked secrets", async () => {
  const setup = new URL(server.setupLink ?? "").pathname;
  keep("set-up link", setup.slice("/setup/".length));
  cookie = cookieOf(await post(setup, { email: "ada@example.com", name: "Ada", password: first }));
  csrf = (await json("GET", "/v1/session"))["csrf_token"] ?? "";
  await json("POST", "/v1/session/password", { current_password: first, new_password: second });
  cookie = cookieOf(await post("/sign-in", { email: "ada@example.com", password: second }));
  csrf = keep("CSRF token", (await json("GET", "/v1/session"))["csrf_token"]);

  const invitation = await json("POST", "/v1/invitations", { email: "ben@example.com" });
  const { pathname } = new URL(invitation["link"] ?? "");
  keep("invitation", pathname.slice("/invitations/".length));
  cookieOf(await post(pathname, { name: "Ben", password: guests }));
  const list = (await json("GET", "/v1/admin/people?email=ben@example.com")) as unknown as { data: { id: string }[] };
  const reset = await json("POST", `/v1/admin/people/${list.data[0]?.id}/reset-link`);
  const resetPath = new URL(reset["link"] ?? "").pathname;
  keep("reset link", resetPath.slice("/reset/".length));
  cookieOf(await post(resetPath, { password: third }));

  const host = `localhost:${server.port}`;
  const headers = { host, origin: `http://${host}` };
  const device = new SoftwareAuthenticator(`http://${host}`);
  const creation = await json("POST", "/v1/passkeys/options", undefined, { headers });
  keep("passkey's creation challenge", creation["challenge"]);
  const made = device.create(creation as never);
  await json("POST", "/v1/passkeys", { name: "Laptop", response: made }, { headers });
  const asked = await json("POST", "/sign-in/passkey/options", undefined, { headers, as: "" });
  const { challenge_id, options } = asked as unknown as { challenge_id: string; options: { challenge: string } };
  keep("passkey's challenge", options.challenge);
  keep("passkey's challenge id", challenge_id);
  const response = device.get(options as never);
  keep("passkey's signature", response.response.signature);
  await json("POST", "/sign-in/passkey", { challenge_id, response }, { headers, as: "" });

  provider.person = { sub: "eve", email: "eve@works.example", email_verified: true };
  provider.lies = { callback: { code: keep("identity provider's code", "CANARYSSOCODE") } };
  const start = await send("GET", "/sso/start");
  const way = new URL(start.headers.get("location") ?? "");
  const back = await provider.visit(way.href);
  keep("single sign-on's state", way.searchParams.get("state"));
  keep("single sign-on's nonce", way.searchParams.get("nonce"));
  const browser = start.headers.get("set-cookie")?.split(";")[0] ?? "";
  cookieOf(await send("GET", back.pathname + back.search, { as: browser }));
});

test("registers, allows and serves an app by code, refresh token and device with marked secrets", async () => {
  const request = { name: "Notes", type: "confidential", redirect_uris: [redirectUri], scopes: ["chat:write"] };
  const registered = await json("POST", "/v1/apps", request);
  app.id = registered["id"] ?? "";
  keep("client secret", registered["client_secret"]);
  const rotated = await json("POST", `/v1/apps/${app.id}/rotate-secret`, { overlap_seconds: 60 });
  app.secret = keep("second client secret", rotated["client_secret"]);
  keep("PKCE verifier", verifier);

  const page = await send("GET", authorizePath(app, { code_challenge: challenge }), { as: cookie });
  const { action, fields } = formOf(await page.text());
  const consent = { ...fields, decision: "allow" };
  const allowed = await post(action, consent, { as: cookie });
  const code = keep("authorization code", answered(allowed)["code"]);
  const fieldsOf = { grant_type: "authorization_code", code, redirect_uri: redirectUri, code_verifier: verifier };
  const tokens = await redeem("code", fieldsOf, app);
  const refreshed = await redeem("refresh", { grant_type: "refresh_token", refresh_token: tokens.refresh }, app);
  const client = { client_id: app.id, client_secret: app.secret };
  for (const path of ["/oauth/introspect", "/oauth/revoke"])
    expect((await post(path, { token: refreshed.refresh, ...client })).status).toBe(200);

  const cli = { id: "headrace-cli" };
  const device = await post("/oauth/device_authorization", { client_id: cli.id });
  const { device_code, user_code } = (await device.json()) as Record<string, string>;
  keep("device code", device_code);
  const asking = await post("/device", { csrf, user_code: user_code ?? "" }, { as: cookie });
  const approval = formOf(await asking.text());
  const decided = { ...approval.fields, decision: "allow" };
  expect((await post(approval.action, decided, { as: cookie })).status).toBe(303);
  await redeem("device", { grant_type: deviceGrant, device_code: device_code ?? "" }, cli);
  expect(secrets.size).toBeGreaterThan(30);
});

/** Everywhere where somebody may put it by mistake, or by malice. */
function misuses(secret: string): [string, string, Sent][] {
  const client = { client_id: app.id, client_secret: app.secret };
  const bearer = { authorization: `Bearer ${secret}` };
  const inHeader = encodeURIComponent(secret);
  return [
    ["GET", "/v1/session", { headers: { authorization: `Bearer ${inHeader}` } }],
    ["GET", "/v1/session", { headers: { "x-api-key": inHeader } }],
    ["GET", "/v1/session", { as: `headrace_session=${inHeader}` }],
    ["GET", `/setup/${inHeader}`, {}],
    ["GET", `/invitations/${inHeader}`, {}],
    ["GET", `/reset/${inHeader}`, {}],
    ["GET", `/device?user_code=${inHeader}`, {}],
    ["GET", `/sso/callback?code=${inHeader}&state=${inHeader}`, { as: `headrace_sso=${inHeader}` }],
    ["GET", authorizePath({ id: inHeader }), { as: cookie }],
    ["GET", authorizePath(app, { redirect_uri: `https://notes.example/${inHeader}` }), { as: cookie }],
    ["POST", "/sign-in", { body: form({ email: "ada@example.com", password: secret }) }],
    ["POST", "/settings/name", { as: cookie, body: form({ csrf: secret, name: secret }) }],
    ["POST", "/settings/password", { as: cookie, body: form({ csrf, current_password: secret, password: "short" }) }],
    ["POST", "/oauth/token", { body: form({ grant_type: secret, ...client }) }],
    ["POST", "/oauth/token", { body: form({ grant_type: "refresh_token", refresh_token: secret, ...client }) }],
    ["POST", "/oauth/token", { body: form({ grant_type: "authorization_code", code: secret, ...client }) }],
    [
      "POST",
      "/oauth/token",
      { body: form({ grant_type: deviceGrant, device_code: secret, client_id: "headrace-cli" }) },
    ],
    ["POST", "/oauth/token", { body: form({ grant_type: "refresh_token", client_id: app.id, client_secret: secret }) }],
    ["POST", "/oauth/token", { body: form({ [secret]: secret, ...client }) }],
    ["POST", "/oauth/introspect", { body: form({ token: `${secret}x`, ...client }) }],
    ["POST", "/oauth/revoke", { body: form({ token: `${secret}x`, token_type_hint: secret, ...client }) }],
    ["POST", "/oauth/token", { headers: bearer, body: form({ grant_type: "refresh_token" }) }],
    ["POST", "/v1/session/password", { as: cookie, body: { current_password: secret, new_password: "x" } }],
    ["POST", "/v1/session/password", { as: cookie, body: { current_password: [secret], new_password: { a: secret } } }],
    ["PATCH", "/v1/session", { as: cookie, body: { account_id: secret } }],
    ["POST", "/v1/invitations", { as: cookie, body: { email: secret, role: secret } }],
    ["POST", "/v1/apps", { as: cookie, body: { name: "x", redirect_uris: [secret], scopes: [secret], type: secret } }],
    ["POST", "/sign-in/passkey", { body: { challenge_id: secret, response: { id: secret } } }],
    ["POST", "/v1/auth/token", { body: { api_key: secret } }],
  ];
}

// hardening: K10
test("refuses each marked secret in a wrong place without repeating it", async () => {
  // What is in use belongs into some of these: the one session's cookie, and what its forms send along.
  const all = [...secrets].filter(([what, secret]) => what !== "CSRF token" && !cookie.endsWith(secret));
  const repeated: string[] = [];
  let refusals = 0;
  for (const [what, secret] of all) {
    const answers = await Promise.all(
      misuses(secret).map(async ([method, path, sent]) => {
        const response = await send(method, path, sent);
        // The right password in its place is no misuse: a cookie is where its session belongs.
        const headers = [...response.headers].filter(([name]) => name !== "set-cookie");
        const text = `${await response.text()}\n${JSON.stringify(headers)}`;
        return { where: `${method} ${path.split("?")[0]?.replace(encodeURIComponent(secret), "…")}`, response, text };
      }),
    );
    for (const { where, response, text } of answers) {
      shown += text;
      if (!response.ok) refusals++;
      if (text.includes(secret) || text.includes(encodeURIComponent(secret))) repeated.push(`${what} by ${where}`);
    }
  }
  expect(repeated).toEqual([]);
  expect(refusals).toBeGreaterThan(all.length * 15);
});

// hardening: K10
test("writes none of the marked secrets to the log", () => {
  const lines = server.logText().split("\n");
  expect(lines.length).toBeGreaterThan(500);
  const found = [...secrets].filter(([, secret]) => lines.some((line) => line.includes(secret)));
  expect(found.map(([what]) => what)).toEqual([]);
});

test("shows no other secret in the answer to a misused one", () => {
  const found = [...secrets].filter(([what, secret]) => what !== "CSRF token" && shown.includes(secret));
  expect(found.map(([what]) => what)).toEqual([]);
});

// hardening: K10
test("stores none of the secrets readably in database, spool or other files", async () => {
  await server.people.links.settled();
  const files = filesIn(server.dataDir);
  expect(files.map((file) => file.slice(server.dataDir.length + 1))).toContain("headrace.db");
  const db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
  const tables = db.query("SELECT name FROM sqlite_schema WHERE type = 'table'").all() as { name: string }[];
  const rows = tables.map(({ name }) => JSON.stringify(db.query(`SELECT * FROM ${name}`).all()));
  const count = (db.query("SELECT count(*) AS n FROM sessions").get() as { n: number }).n;
  db.close();
  expect(count).toBeGreaterThan(3);
  const texts = [...rows, ...files.map((file) => readFileSync(file, "latin1"))];
  const found = [...secrets].filter(([, secret]) => texts.some((text) => text.includes(secret)));
  expect(found.map(([what]) => what)).toEqual([]);
});

// hardening: K10
test("exposes none of the secrets in metrics, traces, doctor or backup", async () => {
  await until(() => collector.spans.length > 100, "traces have come", 20_000);
  const texts = [await metricsOf(server), await doctorOf(server, yaml), ...(await backupOf(server)).values()];
  texts.push(collector.text());
  const found = [...secrets].filter(([, secret]) => texts.some((text) => text.includes(secret)));
  expect(found.map(([what]) => what)).toEqual([]);
});
