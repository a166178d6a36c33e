// A person at a browser without a screen: pages of a running server over HTTP, one cookie, forms filled in.
import { createHash, randomBytes } from "node:crypto";
import { hiddenFields } from "./page-parts.ts";
import { cookieHeader } from "./people.ts";

export interface WebAnswer {
  status: number;
  text: string;
  /** Where a redirect leads; empty for a page. */
  location: string;
}

export interface AppClient {
  id: string;
  /** Undefined of a public one. */
  secret: string | undefined;
  redirectUri: string;
}

/** What the tests of one app send and keep for one authorization. */
export interface AskedCode {
  code: string;
  verifier: string;
}

const credentials = { email: "ada@example.test", password: "correct horse battery" };

export class WebPerson {
  /** Without a slash at the end. */
  readonly url: string;
  cookie = "";
  #page = "";

  constructor(url: string) {
    this.url = url;
  }

  /** The first person of an installation. */
  static async setUp(url: string, setupLink: string | undefined): Promise<WebPerson> {
    const person = new WebPerson(url);
    const { pathname } = new URL(setupLink ?? "");
    const { status, location } = await person.post(pathname, { ...credentials, name: "Ada" });
    if (status !== 303 || location !== "/settings?done=setup") throw new Error(`The set-up answered ${status}.`);
    return person;
  }

  /** Again, when the session has ended. */
  async signIn(): Promise<void> {
    this.cookie = "";
    const { status, text } = await this.post("/sign-in", credentials);
    if (status !== 303) throw new Error(`The sign-in answered ${status}: ${text.slice(0, 500)}`);
  }

  get(target: string): Promise<WebAnswer> {
    return this.#ask(target, {});
  }

  /** Fills in the form of the page before that leads to `action`. */
  submit(action: string, fields: Record<string, string>): Promise<WebAnswer> {
    return this.post(action, { ...hiddenFields(this.#page, action), ...fields });
  }

  post(target: string, fields: Record<string, string>): Promise<WebAnswer> {
    return this.#ask(target, { method: "POST", body: new URLSearchParams(fields) });
  }

  /** Asks, and where the person is asked, presses that button. */
  async authorize(query: URLSearchParams | string, decision: "allow" | "deny" = "allow"): Promise<WebAnswer> {
    const asked = await this.get(`/oauth/authorize?${query}`);
    return asked.status === 200 ? this.submit("/oauth/authorize", { decision }) : asked;
  }

  /** A code with its verifier; throws where none is given. */
  async code(app: AppClient, scope = "chat:write models:read"): Promise<AskedCode> {
    const verifier = randomBytes(32).toString("base64url");
    const query = new URLSearchParams({
      ...{ response_type: "code", client_id: app.id, redirect_uri: app.redirectUri, scope },
      ...{ code_challenge: createHash("sha256").update(verifier).digest("base64url"), code_challenge_method: "S256" },
    });
    const { status, location, text } = await this.authorize(query);
    const code = URL.canParse(location) ? new URL(location).searchParams.get("code") : null;
    if (code === null) throw new Error(`No code was given: ${status} ${location} ${text.slice(0, 500)}`);
    return { code, verifier };
  }

  async decideDevice(userCode: string, decision: "allow" | "deny"): Promise<void> {
    await this.get(`/device?user_code=${userCode}`);
    await this.submit("/device", { user_code: userCode });
    const { status, location } = await this.submit("/device/decision", { decision });
    if (status !== 303) throw new Error(`The decision on the device was answered with ${status} ${location}.`);
  }

  async #ask(target: string, init: RequestInit): Promise<WebAnswer> {
    const response = await fetch(this.url + target, {
      ...init,
      redirect: "manual",
      headers: { ...(this.cookie === "" ? {} : { cookie: this.cookie }), origin: this.url },
    });
    const set = response.headers.get("set-cookie");
    if (set !== null) this.cookie = cookieHeader(set);
    const text = await response.text();
    const { status } = response;
    if (status !== 303) this.#page = text;
    return { status, text, location: response.headers.get("location") ?? "" };
  }
}

export interface AppRequest {
  type?: "confidential" | "public";
  redirectUris?: readonly string[];
  scopes?: readonly string[];
}

/** Registers an app by the API, with a key of the installation. */
export async function registerApp(server: { url: string; key: string }, request: AppRequest = {}): Promise<AppClient> {
  const { type = "confidential", redirectUris = ["https://app.example/callback"], scopes } = request;
  const response = await fetch(`${server.url}/v1/apps`, {
    method: "POST",
    headers: { authorization: `Bearer ${server.key}`, "content-type": "application/json" },
    body: JSON.stringify({ name: `A ${type} app`, type, redirect_uris: redirectUris, ...(scopes ? { scopes } : {}) }),
  });
  const app = (await response.json()) as { id: string; client_secret?: string };
  if (!response.ok) throw new Error(`The app was refused: ${JSON.stringify(app)}`);
  return { id: app.id, secret: app.client_secret, redirectUri: redirectUris[0] ?? "" };
}

export interface TokenReply {
  status: number;
  /** `{}` where there is no body. */
  body: Record<string, unknown>;
}

/** Asks an OAuth endpoint as the app, with its secret in the header where it has one. */
export async function askAsApp(
  url: string,
  path: "token" | "revoke" | "introspect" | "device_authorization",
  app: Pick<AppClient, "id" | "secret">,
  fields: Record<string, string>,
): Promise<TokenReply> {
  const headers: Record<string, string> = app.secret === undefined ? {} : basicHeader(app.id, app.secret);
  const own = app.secret === undefined ? { client_id: app.id } : {};
  const response = await fetch(`${url}/oauth/${path}`, {
    method: "POST",
    headers,
    body: new URLSearchParams({ ...own, ...fields }),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? {} : (JSON.parse(text) as Record<string, unknown>) };
}

export const codeFields = ({ code, verifier }: AskedCode, app: AppClient): Record<string, string> => ({
  ...{ grant_type: "authorization_code", code, redirect_uri: app.redirectUri, code_verifier: verifier },
});

export const refreshFields = (token: unknown, more: Record<string, string> = {}): Record<string, string> => ({
  ...{ grant_type: "refresh_token", refresh_token: String(token) },
  ...more,
});

/** Both parts are form-encoded (RFC 6749, 2.3.1). */
export function basicHeader(id: string, secret: string): { authorization: string } {
  const encoded = [id, secret].map((part) => new URLSearchParams({ "": part }).toString().slice(1)).join(":");
  return { authorization: `Basic ${Buffer.from(encoded).toString("base64")}` };
}
