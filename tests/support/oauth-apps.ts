// OAuth apps of a running server: registered over its API, given codes and tokens by people at a browser, asking as apps do.
import { createHash, randomBytes } from "node:crypto";
import type { CreateAppRequest } from "../../src/wire/people/apps.ts";
import { allow, type Browser } from "./browser.ts";
import type { Reachable } from "./clients.ts";

export interface RegisteredApp {
  /** Its `client_id`. */
  id: string;
  /** Empty of a public app. */
  secret: string;
  /** The first of them. */
  redirectUri: string;
}

/** What the app keeps of one authorization until it redeems it. */
export interface AskedCode {
  code: string;
  verifier: string;
}

export interface AppTokens {
  access_token: string;
  refresh_token: string;
}

export interface AppReply {
  status: number;
  /** `{}` where there is no body. */
  body: Record<string, unknown>;
}

type Fields = Record<string, string>;

/** Where apps of tests are answered, unless said otherwise; nothing is there. */
export const redirectUri = "https://notes.example/callback";

/**
 * In the account and environment of the server's key: confidential, at `redirectUri`, with the default scopes, unless said
 * otherwise.
 */
export async function registerApp(
  server: Pick<Reachable, "url" | "key">,
  settings: Partial<CreateAppRequest> = {},
): Promise<RegisteredApp> {
  const response = await fetch(`${server.url}/v1/apps`, {
    method: "POST",
    headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json" },
    body: JSON.stringify({ name: "Notes", redirect_uris: [redirectUri], ...settings }),
  });
  if (!response.ok) throw new Error(`No app: ${response.status} ${await response.text()}`);
  const { id, client_secret = "" } = (await response.json()) as { id: string; client_secret?: string };
  return { id, secret: client_secret, redirectUri: settings.redirect_uris?.[0] ?? redirectUri };
}

/** What the app gets once the person at the browser has allowed it; without `scope`, for all that it may ask for. */
export async function signInTo(
  app: RegisteredApp,
  server: Pick<Reachable, "url">,
  browser: Browser,
  scope?: string,
): Promise<AppTokens> {
  const response = await redeem(app, server, await codeFor(app, browser, scope));
  if (!response.ok) throw new Error(`No tokens: ${response.status} ${await response.text()}`);
  return (await response.json()) as AppTokens;
}

/** Does what `signInTo` does, up to the code that the browser brings the app. */
export async function codeFor(app: RegisteredApp, browser: Browser, scope?: string): Promise<AskedCode> {
  const verifier = randomBytes(32).toString("base64url");
  const query = new URLSearchParams({
    ...{ response_type: "code", client_id: app.id, redirect_uri: app.redirectUri },
    ...{ code_challenge: createHash("sha256").update(verifier).digest("base64url"), code_challenge_method: "S256" },
    ...(scope === undefined ? {} : { scope }),
  });
  const answer = await allow(browser, `/oauth/authorize?${query}`);
  const code = answer.searchParams.get("code");
  if (code === null) throw new Error(`No code was given: ${answer.href}`);
  return { code, verifier };
}

export function redeem(app: RegisteredApp, { url }: Pick<Reachable, "url">, asked: AskedCode): Promise<Response> {
  return postAsApp(app, `${url}/oauth/token`, codeFields(asked, app));
}

export const codeFields = ({ code, verifier }: AskedCode, app: RegisteredApp): Fields => ({
  ...{ grant_type: "authorization_code", code, redirect_uri: app.redirectUri, code_verifier: verifier },
});

export const refreshFields = (token: unknown, more: Fields = {}): Fields => ({
  ...{ grant_type: "refresh_token", refresh_token: String(token) },
  ...more,
});

/** Does what `postAsApp` does, and reads the answer. */
export async function askAsApp(
  url: string,
  path: "token" | "revoke" | "introspect" | "device_authorization",
  app: Pick<RegisteredApp, "id" | "secret">,
  fields: Fields,
): Promise<AppReply> {
  const response = await postAsApp(app, `${url}/oauth/${path}`, fields);
  const text = await response.text();
  return { status: response.status, body: text === "" ? {} : (JSON.parse(text) as Record<string, unknown>) };
}

/** A form that an app sends, with its secret in the header where it has one. */
export function postAsApp(
  { id, secret }: Pick<RegisteredApp, "id" | "secret">,
  url: string,
  form: Fields,
): Promise<Response> {
  const isPublic = secret === "";
  const body = new URLSearchParams({ ...(isPublic ? { client_id: id } : {}), ...form });
  return fetch(url, { method: "POST", ...(isPublic ? {} : { headers: basicHeader(id, secret) }), body });
}

/** Both parts are form-encoded (RFC 6749, 2.3.1). */
export function basicHeader(id: string, secret: string): { authorization: string } {
  const encoded = [id, secret].map((part) => new URLSearchParams({ "": part }).toString().slice(1)).join(":");
  return { authorization: `Basic ${Buffer.from(encoded).toString("base64")}` };
}
