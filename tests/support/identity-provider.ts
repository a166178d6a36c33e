// Identity providers on loopback: the real `oidc-provider`, and one of a few lines that answers wrongly where a test says so.
import { createServer } from "node:http";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";

export const clientId = "headrace";
export const clientSecret = "canary-client-secret";

/** What a provider says of whoever signs in. */
export interface ProviderPerson {
  sub: string;
  email?: string;
  email_verified?: boolean | string;
  name?: string;
}

export interface TestProvider extends AsyncDisposable {
  issuer: string;
  /** Who signs in next. */
  person: ProviderPerson;
  /** A browser's way from the authorization URL to the redirect back. */
  visit(url: string): Promise<URL>;
}

interface ProviderClass {
  new (issuer: string, configuration: object): { callback(): Parameters<typeof createServer>[1] };
}

/** It has no types of its own. */
async function loadProvider(): Promise<ProviderClass> {
  const specifier: string = "oidc-provider";
  return ((await import(specifier)) as { default: ProviderClass }).default;
}

/** With its own pages for signing in and consenting, which `visit` fills in. */
export async function startOidcProvider(redirectUri: string): Promise<TestProvider> {
  const Provider = await loadProvider();
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const issuer = `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`;
  const minutes = () => 600;
  const ttl = { Interaction: minutes, Session: minutes, Grant: minutes, AccessToken: minutes, IdToken: minutes };
  const provider: TestProvider = {
    issuer,
    person: { sub: "nobody" },
    visit: (url) => throughPages(url, provider.person.sub, redirectUri),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  const configuration = {
    clients: [{ client_id: clientId, client_secret: clientSecret, redirect_uris: [redirectUri] }],
    claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
    findAccount: (_context: unknown, id: string) => {
      const claims = { ...provider.person };
      return { accountId: id, claims: () => claims };
    },
    cookies: { keys: ["a test's key"] },
    ttl,
  };
  server.on("request", new Provider(issuer, configuration).callback() ?? (() => {}));
  return provider;
}

/** A browser with cookies that types the login and agrees. */
async function throughPages(begin: string, login: string, redirectUri: string): Promise<URL> {
  const cookies = new Map<string, string>();
  let url = new URL(begin);
  let init: RequestInit = {};
  for (let step = 0; step < 15; step++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(url, { ...init, redirect: "manual", headers: { cookie } });
    for (const set of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      cookies.set(name, value);
    }
    const location = response.headers.get("location");
    if (location !== null) {
      url = new URL(location, url);
      if (url.href.startsWith(redirectUri)) return url;
      init = {};
      continue;
    }
    const page = await response.text();
    const action = /action="([^"]+)"/.exec(page)?.[1];
    const prompt = /name="prompt" value="(\w+)"/.exec(page)?.[1];
    if (action === undefined || prompt === undefined) throw new Error(`${url.pathname} answers ${response.status}`);
    url = new URL(action, url);
    init = { method: "POST", body: new URLSearchParams({ prompt, login, password: "x" }) };
  }
  throw new Error("The provider's pages lead nowhere.");
}

/** What is wrong with the next answers; all of it right where nothing is said. */
export interface Lies {
  idToken?: JWTPayload;
  /** Signed by a key that the provider does not publish. */
  foreignKey?: boolean;
  /** In place of the answer, by path. */
  answers?: Record<string, (request: Request) => Response | Promise<Response>>;
  /** Members of the redirect back; null leaves one out. */
  callback?: Record<string, string | null>;
  metadata?: Record<string, unknown>;
}

export interface LyingProvider extends TestProvider {
  lies: Lies;
  /** Paths that were asked for. */
  asked: string[];
}

/** Says and signs what it is told to. */
export async function startLyingProvider(): Promise<LyingProvider> {
  const [own, foreign] = await Promise.all([generateKeyPair("RS256"), generateKeyPair("RS256")]);
  const jwk = { ...(await exportJWK(own.publicKey)), kid: "k1", alg: "RS256", use: "sig" };
  let nonce = "";
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
  const issuer = `http://127.0.0.1:${server.port}`;
  const provider: LyingProvider = {
    ...{ issuer, person: { sub: "s" }, lies: {}, asked: [] },
    async visit(url) {
      const query = new URL(url).searchParams;
      nonce = query.get("nonce") ?? "";
      const back = new URL(query.get("redirect_uri") ?? "");
      const members = { code: "c", state: query.get("state"), iss: issuer, ...provider.lies.callback };
      for (const [name, value] of Object.entries(members)) if (value !== null) back.searchParams.set(name, value);
      return back;
    },
    async [Symbol.asyncDispose]() {
      await server.stop(true);
    },
  };

  async function answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    provider.asked.push(pathname);
    const other = provider.lies.answers?.[pathname];
    if (other) return await other(request);
    if (pathname === "/jwks") return Response.json({ keys: [jwk] });
    if (pathname === "/token") return Response.json(await tokens());
    return Response.json({
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      jwks_uri: `${issuer}/jwks`,
      response_types_supported: ["code"],
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: ["RS256"],
      authorization_response_iss_parameter_supported: true,
      ...provider.lies.metadata,
    });
  }

  async function tokens() {
    const { idToken = {}, foreignKey } = provider.lies;
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: issuer, aud: clientId, iat: now, exp: now + 60, nonce, ...provider.person, ...idToken };
    const signed = new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid: "k1" });
    const id_token = await signed.sign((foreignKey ? foreign : own).privateKey);
    return { access_token: "a", token_type: "Bearer", id_token };
  }
  return provider;
}
