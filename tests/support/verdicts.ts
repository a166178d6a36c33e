// Two authorization servers behind one face: what each makes of a request, in a few words that can be compared.
import { setSystemTime } from "bun:test";
import { createHash, randomBytes } from "node:crypto";
import { systemClock } from "../../src/base/clock.ts";
import type { CreateAppRequest } from "../../src/wire/people/apps.ts";
import { allow, Browser, decide, decideDevice, setUp, signIn } from "./browser.ts";
import { startHeadrace } from "./headrace.ts";
import { manualClock } from "./manual-clock.ts";
import { basicHeader, type RegisteredApp, registerApp } from "./oauth-apps.ts";
import { type OtherProvider, startOtherProvider } from "./other-provider.ts";

/** `web` and `other` have a secret, `many` has two addresses as well; `spa` and `native` have none. */
export const clientNames = ["web", "other", "many", "spa", "native"] as const;
export type ClientName = (typeof clientNames)[number];

export const redirectUris: Record<ClientName, readonly string[]> = {
  web: ["https://app.example/callback"],
  other: ["https://other.example/callback?tenant=1"],
  many: ["https://many.example/a", "https://many.example/b"],
  spa: ["https://spa.example/callback"],
  native: ["http://127.0.0.1/callback", "com.example.app:/callback"],
};
export const appScopes = ["chat:write", "models:read"] satisfies CreateAppRequest["scopes"];
export const allScopes = [...appScopes, "usage:read", "keys:manage"];

export type Endpoint = "token" | "revoke" | "introspect" | "device";
export type Fields = Readonly<Record<string, string | undefined>>;

export interface Asked {
  method?: string;
  headers?: Record<string, string>;
  /** The body that is sent; a form of the fields otherwise. */
  body?: string;
}

/** One of the two servers, with a person signed in at it. */
export interface Subject {
  name: "ours" | "theirs";
  issuer: string;
  clients: Record<ClientName, RegisteredApp>;
  /**
   * `page`: the person is told, nobody else. `sign-in`: the person has to sign in first. `redirect <code or error>`: what the
   * app is told, at its address, with `state` and `iss`; what is amiss with these is added.
   */
  authorize(query: string, how?: { signedIn?: boolean; decision?: "allow" | "deny" }): Promise<string>;
  /** Status, and the error or, of introspection, whether it is active. */
  ask(endpoint: Endpoint, fields: Fields, asked?: Asked): Promise<string>;
  /** The JSON of the answer, which has to be a 200. */
  get(endpoint: Endpoint, client: ClientName, fields: Fields): Promise<Record<string, unknown>>;
  /** Where the person allows it. */
  codeOf(query: string): Promise<string>;
  decideDevice(userCode: string, decision: "allow" | "deny"): Promise<void>;
  /** To be called before each comparison: what those before have used up of a minute's allowance is not its business. */
  begin(): void;
  /** From now on it is that much later. */
  later(seconds: number): Promise<void>;
}

const buttons = { allow: "Allow", deny: "Deny" } as const;

export const verifier = randomBytes(32).toString("base64url");
const challenge = createHash("sha256").update(verifier).digest("base64url");
export const state = "a state / with + and ü";

/** A request that both grant, with changes; undefined leaves a parameter out. */
export function authorizeQuery(client: RegisteredApp, changes: Fields = {}): string {
  const fields: Fields = {
    ...{ response_type: "code", client_id: client.id, redirect_uri: client.redirectUri, scope: appScopes.join(" ") },
    ...{ state, code_challenge: challenge, code_challenge_method: "S256" },
    ...changes,
  };
  return form(fields);
}

export function form(fields: Fields): string {
  return new URLSearchParams(
    Object.entries(fields).filter((field): field is [string, string] => field[1] !== undefined),
  ).toString();
}

const paths = {
  ours: {
    token: "/oauth/token",
    revoke: "/oauth/revoke",
    introspect: "/oauth/introspect",
    device: "/oauth/device_authorization",
  },
  theirs: { token: "/token", revoke: "/token/revocation", introspect: "/token/introspection", device: "/device/auth" },
};

export async function startBoth() {
  const ours = await startOurs();
  const theirs = await startTheirs(ours.subject.clients);
  return {
    ...{ ours: ours.subject, theirs: theirs.subject },
    async close() {
      setSystemTime();
      theirs.provider.close();
      await ours.close();
    },
  };
}

async function startOurs() {
  const clock = manualClock(systemClock.nowSeconds());
  const server = await startHeadrace({ clock });
  let person = await setUp(server);
  const clients = {} as Record<ClientName, RegisteredApp>;
  for (const name of clientNames) {
    const type = name === "spa" || name === "native" ? "public" : "confidential";
    clients[name] = await registerApp(server, { type, redirect_uris: [...redirectUris[name]], scopes: appScopes });
  }
  const subject: Subject = {
    ...endpoints("ours", server.url, clients),
    async authorize(query, { signedIn = true, decision = "allow" } = {}) {
      const browser = signedIn ? person : new Browser(server.url);
      const page = await decide(browser, `/oauth/authorize?${query}`, buttons[decision]);
      if (page.url.pathname === "/sign-in") return "sign-in";
      if (!page.leftFor) return pageVerdict(page.status);
      return redirectVerdict(page.headers.get("location") ?? "", query, server.url);
    },
    codeOf: async (query) => codeIn((await allow(person, `/oauth/authorize?${query}`)).href),
    decideDevice: (userCode, decision) => decideDevice(person, userCode, buttons[decision]),
    begin: () => clock.advance(20_000),
    async later(seconds) {
      clock.advance(seconds * 1000);
      if (seconds <= 3_600) return;
      // By now the session may have ended.
      person = new Browser(server.url);
      await person.open("/sign-in");
      await signIn(person);
    },
  };
  return { subject, close: () => server[Symbol.asyncDispose]() };
}

/** With the same ids and secrets. `later` moves the clock of this process, which it reads. */
async function startTheirs(like: Record<ClientName, RegisteredApp>) {
  const provider: OtherProvider = await startOtherProvider(
    clientNames.map((name) => ({
      ...{ id: like[name].id, redirectUris: redirectUris[name], scopes: appScopes, native: name === "native" },
      ...(like[name].secret === "" ? {} : { secret: like[name].secret }),
    })),
    allScopes,
  );
  const signedIn = new ProviderBrowser(provider.url);
  const subject: Subject = {
    ...endpoints("theirs", provider.url, like),
    async authorize(query, { signedIn: isSignedIn = true, decision = "allow" } = {}) {
      const browser = isSignedIn ? signedIn : new ProviderBrowser(provider.url);
      const { status, location, asked } = await browser.follow(`/auth?${query}`, isSignedIn ? decision : undefined);
      if (asked) return "sign-in";
      return location === "" ? pageVerdict(status) : redirectVerdict(location, query, provider.url);
    },
    codeOf: async (query) => codeIn((await signedIn.follow(`/auth?${query}`, "allow")).location),
    decideDevice: (userCode, decision) => provider.decideDevice(userCode, decision),
    begin: () => {},
    later: async (seconds) => void setSystemTime(Date.now() + seconds * 1000),
  };
  return { subject, provider };
}

function endpoints(name: Subject["name"], url: string, clients: Subject["clients"]) {
  const send = (endpoint: Endpoint, fields: Fields, { method = "POST", headers = {}, body = form(fields) }: Asked) =>
    fetch(url + paths[name][endpoint], {
      method,
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
      ...(method === "GET" ? {} : { body }),
    });
  return {
    ...{ name, issuer: url, clients },
    async ask(endpoint: Endpoint, fields: Fields, asked: Asked = {}): Promise<string> {
      const response = await send(endpoint, fields, asked);
      const text = await response.text();
      const { error, active } = text.startsWith("{") ? (JSON.parse(text) as { error?: unknown; active?: boolean }) : {};
      if (active !== undefined) return `${response.status} ${active ? "active" : "inactive"}`;
      return typeof error === "string" ? `${response.status} ${error}` : String(response.status);
    },
    async get(endpoint: Endpoint, client: ClientName, fields: Fields): Promise<Record<string, unknown>> {
      const { id, secret } = clients[client];
      const headers: Record<string, string> = secret === "" ? {} : basicHeader(id, secret);
      const response = await send(endpoint, { ...(secret === "" ? { client_id: id } : {}), ...fields }, { headers });
      if (!response.ok) throw new Error(`${name} ${endpoint}: ${response.status} ${await response.text()}`);
      return (await response.json()) as Record<string, unknown>;
    },
  };
}

const pageVerdict = (status: number) => (status >= 400 ? "page" : `page ${status}`);

function redirectVerdict(location: string, query: string, issuer: string): string {
  const sent = new URLSearchParams(query);
  const { searchParams, hash } = new URL(location);
  const answer = hash === "" ? searchParams : new URLSearchParams(hash.slice(1));
  const target = sent.get("redirect_uri");
  const faults = [
    target !== null && !location.startsWith(target) ? "elsewhere" : "",
    answer.get("state") === sent.get("state") ? "" : "without state",
    answer.get("iss") === issuer ? "" : "without iss",
    hash === "" ? "" : "in the fragment",
  ].filter(Boolean);
  const what = answer.has("code") ? "code" : (answer.get("error") ?? "nothing");
  return ["redirect", what, ...faults].join(" ");
}

function codeIn(location: string): string {
  const code = URL.canParse(location) ? new URL(location).searchParams.get("code") : null;
  if (code === null) throw new Error(`There is no code in ${location || "a page"}.`);
  return code;
}

/** Follows redirects as long as they stay at the server, with its cookies. */
class ProviderBrowser {
  readonly #url: string;
  readonly #cookies = new Map<string, string>();

  constructor(url: string) {
    this.#url = url;
  }

  /** `asked`: it was to sign in, and would not. `location`: where it is sent away to; empty for a page. */
  async follow(
    target: string,
    decision?: "allow" | "deny",
  ): Promise<{ status: number; location: string; asked: boolean }> {
    let next = target;
    for (let hops = 0; hops < 12; hops++) {
      const response = await fetch(this.#url + next, { redirect: "manual", headers: { cookie: this.#cookieHeader() } });
      await response.arrayBuffer();
      for (const set of response.headers.getSetCookie()) this.#keep(set);
      const location = response.headers.get("location") ?? "";
      const path = location.startsWith(this.#url) ? location.slice(this.#url.length) : location;
      if (!path.startsWith("/")) return { status: response.status, location, asked: false };
      if (path.startsWith("/interaction/") && decision === undefined) return { status: 303, location, asked: true };
      next = path.startsWith("/interaction/") ? `${path}?decision=${decision}` : path;
    }
    throw new Error(`${target} leads in circles.`);
  }

  #cookieHeader(): string {
    return [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  #keep(set: string): void {
    const [pair = ""] = set.split(";");
    const [name = ""] = pair.split("=");
    const value = pair.slice(name.length + 1);
    if (value === "") this.#cookies.delete(name);
    else this.#cookies.set(name, value);
  }
}
