// OAuth apps of a running server: registered over its API, and given tokens by people who allow them at a browser.
import type { CreateAppRequest } from "../../src/domain/app-wire.ts";
import { allow, type Browser } from "./browser.ts";
import type { Reachable } from "./clients.ts";

export interface RegisteredApp {
  /** Its `client_id`. */
  id: string;
  /** Empty of a public app. */
  secret: string;
}

export interface AppTokens {
  access_token: string;
  refresh_token: string;
}

/** Where confidential apps of tests are answered; nothing is there. */
export const redirectUri = "https://notes.example/callback";

/**
 * In the account and environment of the server's key: confidential, at `redirectUri`, with the default scopes, unless said
 * otherwise.
 */
export async function registerApp(server: Reachable, settings: CreateAppRequest): Promise<RegisteredApp> {
  const response = await fetch(`${server.url}/v1/apps`, {
    method: "POST",
    headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json" },
    body: JSON.stringify({ redirect_uris: [redirectUri], ...settings }),
  });
  if (!response.ok) throw new Error(`No app: ${response.status} ${await response.text()}`);
  const { id, client_secret = "" } = (await response.json()) as { id: string; client_secret?: string };
  return { id, secret: client_secret };
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

/** As `signInTo`, up to the code that the browser brings the app. */
export async function codeFor(app: RegisteredApp, browser: Browser, scope?: string): Promise<string> {
  const asked = { response_type: "code", client_id: app.id, redirect_uri: redirectUri };
  const query = new URLSearchParams({ ...asked, ...(scope === undefined ? {} : { scope }) });
  return (await allow(browser, `/oauth/authorize?${query}`)).searchParams.get("code") ?? "";
}

export function redeem(app: RegisteredApp, { url }: Pick<Reachable, "url">, code: string): Promise<Response> {
  return postAsApp(app, `${url}/oauth/token`, { grant_type: "authorization_code", redirect_uri: redirectUri, code });
}

/** A form that a confidential app sends, with its secret in the header. */
export function postAsApp({ id, secret }: RegisteredApp, url: string, form: Record<string, string>): Promise<Response> {
  const headers = { authorization: `Basic ${btoa(`${id}:${secret}`)}` };
  return fetch(url, { method: "POST", headers, body: new URLSearchParams(form) });
}
