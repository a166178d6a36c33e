// A server with an operator, an app with its callback, and what tests in a browser begin with.
import { createHash, randomBytes } from "node:crypto";
import { certificate } from "./chromium.ts";
import type { TestServer } from "./headrace.ts";

export const operator = { email: "ada@example.test", name: "Ada Lovelace", password: "correct horse battery" };

/** `localhost`, as passkeys need a name. */
export function pagesOf(server: Pick<TestServer, "url">): string {
  return server.url.replace("127.0.0.1", "localhost");
}

/** Follows the set-up link without a browser. Gives the cookie of the operator's session. */
export async function setUp(server: TestServer): Promise<string> {
  const url = new URL(server.setupLink ?? "");
  const response = await fetch(url, {
    ...{ method: "POST", redirect: "manual", body: new URLSearchParams(operator) },
    headers: { origin: url.origin, "sec-fetch-site": "same-origin" },
  });
  if (response.status !== 303) throw new Error(`Set-up answers ${response.status}.`);
  return (response.headers.get("set-cookie") ?? "").split(";")[0] ?? "";
}

export type Caller = (method: string, path: string, body?: unknown) => Promise<Record<string, unknown>>;

/** The API as the pages' own scripts would use it, with the cookie of a session. */
export async function callerOf(server: Pick<TestServer, "url">, cookie: string): Promise<Caller> {
  const settings = await (await fetch(`${server.url}/settings`, { headers: { cookie } })).text();
  const csrf = /name="csrf" value="([^"]+)"/.exec(settings)?.[1];
  if (csrf === undefined) throw new Error("Nobody is signed in.");
  return async (method, path, body) => {
    const headers = { cookie, origin: server.url, "x-csrf-token": csrf, "content-type": "application/json" };
    const response = await fetch(server.url + path, {
      ...{ method, headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
    return (await response.json()) as Record<string, unknown>;
  };
}

export type PersonAtBrowser = typeof operator;

/** Somebody new, who followed an invitation into the account without a browser. */
export async function newcomer(server: Pick<TestServer, "url">, call: Caller): Promise<PersonAtBrowser> {
  const person = { ...operator, email: `${Bun.randomUUIDv7()}@example.test` };
  const path = await invite(call, person.email);
  const response = await fetch(server.url + path, {
    ...{ method: "POST", redirect: "manual", body: new URLSearchParams(person) },
    headers: { origin: server.url },
  });
  if (response.status !== 303) throw new Error(`The invitation answers ${response.status}.`);
  return person;
}

/** Path of the link that invites somebody into the account. */
export async function invite(call: Caller, email: string, role = "member"): Promise<string> {
  const { link } = await call("POST", "/v1/invitations", { email, role });
  return new URL(String(link)).pathname;
}

/** An app elsewhere, by https and, as programs on people's own machines have it, by http: it notes what browsers bring it. */
export function startCallback() {
  const seen: URL[] = [];
  const fetch = (request: Request) => {
    const url = new URL(request.url);
    if (url.pathname === "/callback") seen.push(url);
    const html = `<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>App</title><h1>Back at the app</h1></html>`;
    return new Response(html, { headers: { "content-type": "text/html" } });
  };
  const { key, cert } = certificate;
  const site = Bun.serve({ port: 0, hostname: "127.0.0.1", tls: { key, cert }, fetch });
  const program = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
  return {
    seen,
    hosts: [`127.0.0.1:${site.port}`, `127.0.0.1:${program.port}`],
    redirectUri: `https://127.0.0.1:${site.port}/callback`,
    loopbackUri: `http://127.0.0.1:${program.port}/callback`,
    stop: () => Promise.all([site.stop(true), program.stop(true)]),
  };
}

export interface TestApp {
  id: string;
  redirectUri: string;
  verifier: string;
  /** Path of an authorization request, with changes. */
  authorize(changes?: Readonly<Record<string, string>>): string;
  /** What the token endpoint gives for a code. */
  redeem(code: string): Promise<Record<string, unknown>>;
}

export async function registerApp(
  server: TestServer,
  {
    redirectUri,
    ...more
  }: { redirectUri: string; name?: string; homepage_url?: string; scopes?: string[]; type?: string },
): Promise<TestApp> {
  const response = await server.request("/v1/apps", {
    body: { name: "Notes", type: "confidential", redirect_uris: [redirectUri], ...more },
  });
  if (!response.ok) throw new Error(await response.text());
  const { id, client_secret = "" } = (await response.json()) as { id: string; client_secret?: string };
  const verifier = randomBytes(32).toString("base64url");
  const challenge = createHash("sha256").update(verifier).digest("base64url");
  return {
    ...{ id, redirectUri, verifier },
    authorize(changes = {}) {
      const asked = {
        ...{
          response_type: "code",
          client_id: id,
          redirect_uri: redirectUri,
          state: "s-1",
          scope: "chat:write models:read",
        },
        ...{ code_challenge: challenge, code_challenge_method: "S256" },
        ...changes,
      };
      return `/oauth/authorize?${new URLSearchParams(asked)}`;
    },
    async redeem(code) {
      const fields = { grant_type: "authorization_code", code, redirect_uri: redirectUri, client_id: id };
      const secret: Record<string, string> = client_secret === "" ? {} : { client_secret };
      return tokenAnswer(server, { ...fields, ...secret, code_verifier: verifier });
    },
  };
}

export async function tokenAnswer(
  server: Pick<TestServer, "url">,
  fields: Readonly<Record<string, string>>,
): Promise<Record<string, unknown>> {
  const response = await fetch(`${server.url}/oauth/token`, { method: "POST", body: new URLSearchParams(fields) });
  return (await response.json()) as Record<string, unknown>;
}

export interface Device {
  device_code: string;
  user_code: string;
  /** Path and query of the address that holds the code already. */
  complete: string;
}

/** A device that asks for the way in; `headrace login` unless said otherwise. */
export async function startDevice(server: Pick<TestServer, "url">, clientId = "headrace-cli"): Promise<Device> {
  const body = new URLSearchParams({ client_id: clientId });
  const response = await fetch(`${server.url}/oauth/device_authorization`, { method: "POST", body });
  const answer = (await response.json()) as {
    device_code: string;
    user_code: string;
    verification_uri_complete: string;
  };
  const { pathname, search } = new URL(answer.verification_uri_complete);
  return { ...answer, complete: pathname + search };
}

/** What the device gets once the person has decided. */
export function deviceAnswer(server: Pick<TestServer, "url">, { device_code }: Device, clientId = "headrace-cli") {
  const grant_type = "urn:ietf:params:oauth:grant-type:device_code";
  return tokenAnswer(server, { grant_type, device_code, client_id: clientId });
}
