// Clients that no account registered, by documents and by registration, with the MCP SDK's own way to sign in, against a running server.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  auth,
  Client,
  type OAuthClientProvider,
  type StoredOAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { decodeJwt } from "jose";
import * as oauth from "oauth4webapi";
import { allow, type Browser, removeAccess, setUp } from "../support/browser.ts";
import { type DocumentHost, startDocumentHost } from "../support/client-documents.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { shiftedClock } from "../support/manual-clock.ts";

const clock = shiftedClock();
const callback = "http://127.0.0.1:39683/callback";
const insecure = { [oauth.allowInsecureRequests]: true };

let host: DocumentHost;
let tools: Bun.Server<undefined>;
let server: TestServer;
let olga: Browser;

beforeAll(async () => {
  host = startDocumentHost();
  const handler = createMcpHandler(() => {
    const weather = new McpServer({ name: "weather", version: "1" });
    weather.registerTool("forecast", {}, () => ({ content: [{ type: "text", text: "Rain" }] }));
    return weather;
  });
  tools = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch: (request) => handler.fetch(request) });
  const yaml = `tools:\n  servers:\n    - { name: weather, title: The weather, url: "http://127.0.0.1:${tools.port}/mcp" }\n`;
  const documentFetch = { resolve: host.resolve, ca: host.ca, timeoutMs: 1_000 };
  server = await startHeadrace({ clock, yaml, documentFetch });
  olga = await setUp(server);
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await tools.stop(true);
  host[Symbol.dispose]();
});

/** A program with the SDK: it begins to sign in, and goes on with the answer. */
class Program implements OAuthClientProvider {
  readonly redirectUrl = callback;
  readonly clientMetadata = { client_name: "Program", redirect_uris: [callback], token_endpoint_auth_method: "none" };
  readonly clientMetadataUrl?: string;
  sentTo = new URL("about:blank");
  stored: StoredOAuthTokens | undefined;
  client: Awaited<ReturnType<OAuthClientProvider["clientInformation"]>>;
  #verifier = "";
  #discovery: Awaited<ReturnType<NonNullable<OAuthClientProvider["discoveryState"]>>>;

  constructor(clientMetadataUrl?: string) {
    if (clientMetadataUrl !== undefined) this.clientMetadataUrl = clientMetadataUrl;
  }
  clientInformation = () => this.client;
  saveClientInformation(information: NonNullable<Program["client"]>) {
    this.client = information;
  }
  tokens = () => this.stored;
  saveTokens(tokens: StoredOAuthTokens) {
    this.stored = tokens;
  }
  redirectToAuthorization(url: URL) {
    this.sentTo = url;
  }
  saveCodeVerifier(verifier: string) {
    this.#verifier = verifier;
  }
  codeVerifier = () => this.#verifier;
  saveDiscoveryState(state: NonNullable<ReturnType<Program["discoveryState"]>>) {
    this.#discovery = state;
  }
  discoveryState = () => this.#discovery;
  invalidateCredentials(scope: string) {
    if (scope === "all" || scope === "tokens") this.stored = undefined;
  }

  /** Signs a person in, for the tools at `path`. */
  async signIn(browser: Browser, path: string, root = server.url): Promise<string> {
    const serverUrl = `${root}${path}`;
    expect(await auth(this, { serverUrl })).toBe("REDIRECT");
    const answer = (await allow(browser, this.sentTo)).searchParams;
    const [authorizationCode, iss] = [answer.get("code") ?? "", answer.get("iss") ?? ""];
    expect(await auth(this, { serverUrl, authorizationCode, iss })).toBe("AUTHORIZED");
    return this.stored?.access_token ?? "";
  }
}

const modelsWith = async (token: string) =>
  (await fetch(`${server.baseUrl}/models`, { headers: { authorization: `Bearer ${token}` } })).status;

async function register(metadata: unknown, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.url}/oauth/register`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof metadata === "string" ? metadata : JSON.stringify(metadata),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

async function authorizations(browser: Browser) {
  const { data } = await browser.ask("/v1/authorizations");
  return data as { app: { id: string; name: string; publisher: string }; scopes: string[] }[];
}

describe("a client with a document", () => {
  test("a client with a document signs a person in as the SDK does it, for one resource, and refreshes", async () => {
    const url = host.document("/cli.json", { client_name: "Cli of tests" });
    const program = new Program(url);
    const token = await program.signIn(olga, "/mcp/github");
    expect(program.client?.client_id).toBe(url);
    expect(program.sentTo.searchParams.get("scope")).toBe("tools:use");
    expect(decodeJwt(token)).toMatchObject({ aud: `${server.url}/mcp/github`, scope: "tools:use" });
    expect(await modelsWith(token)).toBe(401);
    expect(await auth(program, { serverUrl: `${server.url}/mcp/github` })).toBe("AUTHORIZED");
    expect(program.stored?.access_token).not.toBe(token);
    expect(decodeJwt(program.stored?.access_token ?? "").aud).toBe(`${server.url}/mcp/github`);
    const [allowed] = await authorizations(olga);
    expect(allowed).toMatchObject({
      app: { name: "Cli of tests", publisher: new URL(url).host },
      scopes: ["tools:use"],
    });
    await removeAccess(olga, allowed?.app.id ?? "");
    expect(await authorizations(olga)).toEqual([]);
    const gone = await auth(program, { serverUrl: `${server.url}/mcp/github` });
    expect(gone).toBe("REDIRECT");
  });

  test("a client with a document is asked about with its host in plain sight, and with where it leads", async () => {
    const url = host.document("/shown.json", { client_name: "Headrace" });
    const program = new Program(url);
    await auth(program, { serverUrl: `${server.url}/mcp` });
    const { text } = await olga.open(program.sentTo);
    expect(text).toContain(`This app comes from <strong>${new URL(url).host}</strong>`);
    expect(text).toContain("Its name is not verified");
    expect(text).toContain("although its name suggests that");
    expect(text).toContain("<strong>Every server</strong>");
    expect(text).toContain("a program on this computer (127.0.0.1)");
    expect(text).not.toContain("chat:write");
  });

  test("a document is fetched for nobody who is not signed in", async () => {
    const url = host.document("/unseen.json");
    const asked = `${server.url}/oauth/authorize?${new URLSearchParams({ client_id: url, response_type: "code" })}`;
    const response = await fetch(asked, { redirect: "manual" });
    expect([response.status, response.headers.get("location")]).toEqual([303, expect.stringMatching(/^\/sign-in/)]);
    expect(host.asked).not.toContain("/unseen.json");
  });

  test("a document that does not do, and a redirect URI that is not in it, lead nobody anywhere", async () => {
    const wrong = host.document("/wrong.json", { client_id: "https://other.example/" });
    const right = host.document("/right.json");
    for (const [client_id, redirect_uri] of [
      [wrong, callback],
      [right, "http://127.0.0.1:39683/other"],
      [right, "https://evil.example/callback"],
      [`${host.origin}/nothing.json`, callback],
    ] as const) {
      const parameters = { client_id, redirect_uri, response_type: "code", code_challenge_method: "S256" };
      const page = await olga.open(`/oauth/authorize?${new URLSearchParams(parameters)}`);
      expect([page.status, page.leftFor]).toEqual([400, undefined]);
    }
  });

  test("a client is refused what it was not allowed, whatever it asks for", async () => {
    const program = new Program(host.document("/greedy.json"));
    await auth(program, { serverUrl: `${server.url}/mcp` });
    for (const [name, value, error] of [
      ["scope", "tools:use chat:write", "invalid_scope"],
      ["resource", "https://other.example/mcp", "invalid_target"],
      ["code_challenge", "", "invalid_request"],
    ] as const) {
      const asked = new URL(program.sentTo);
      asked.searchParams.set(name, value);
      const { leftFor } = await olga.open(asked);
      expect(leftFor?.searchParams.get("error")).toBe(error);
    }
  });
});

describe("a client that registers itself", () => {
  test("a client that registers itself signs a person in as the SDK does it, and its code is of use to no other", async () => {
    const program = new Program();
    const token = await program.signIn(olga, "/mcp");
    expect(program.client?.client_id).toMatch(/^app_/);
    expect(decodeJwt(token)).toMatchObject({ aud: `${server.url}/mcp`, client_id: program.client?.client_id });
    const other = new Program();
    await auth(other, { serverUrl: `${server.url}/mcp` });
    await allow(olga, program.sentTo);
    const stolen = new URLSearchParams({
      ...{ grant_type: "authorization_code", client_id: String(other.client?.client_id), redirect_uri: callback },
      ...{ code: olga.page.leftFor?.searchParams.get("code") ?? "", code_verifier: program.codeVerifier() },
    });
    const refused = await fetch(`${server.url}/oauth/token`, { method: "POST", body: stolen });
    expect([refused.status, ((await refused.json()) as { error: string }).error]).toEqual([400, "invalid_grant"]);
  });

  test("a client that calls this machine by another of its names finds the same, and its token is good for it", async () => {
    const { port } = new URL(server.url);
    for (const name of ["localhost", "127.0.0.1"]) {
      const token = await new Program().signIn(olga, "/mcp", `http://${name}:${port}`);
      expect(decodeJwt(token)).toMatchObject({ iss: server.url, aud: `${server.url}/mcp` });
    }
  });

  test("a client that registers itself does so with oauth4webapi, and gets what it may have", async () => {
    const issuer = new URL(server.url);
    const discovered = await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...insecure });
    const as = await oauth.processDiscoveryResponse(issuer, discovered);
    expect(as).toMatchObject({ client_id_metadata_document_supported: true });
    const metadata = {
      ...{ client_name: "Claude Code (gw)", redirect_uris: ["http://localhost:51839/callback"], scope: "mcp extra" },
      ...{ grant_types: ["authorization_code", "refresh_token"], application_type: "native" },
      token_endpoint_auth_method: "client_secret_basic",
    };
    const response = await oauth.dynamicClientRegistrationRequest(as, metadata, insecure);
    expect(await oauth.processDynamicClientRegistrationResponse(response)).toEqual({
      ...{ client_id: expect.stringMatching(/^app_/), client_id_issued_at: expect.any(Number) },
      ...{ client_name: "Claude Code (gw)", redirect_uris: ["http://localhost:51839/callback"] },
      ...{ grant_types: ["authorization_code", "refresh_token"], response_types: ["code"] },
      ...{ token_endpoint_auth_method: "none", scope: "tools:use" },
    });
  });

  test("a client that registers itself is asked about as one that nobody knows", async () => {
    const program = new Program();
    await auth(program, { serverUrl: `${server.url}/mcp/github` });
    const { text } = await olga.open(program.sentTo);
    expect(text).toContain("This app registered itself. Its name is not verified.");
    expect(text).toContain("This app can use only the tools of <strong>github</strong>.");
  });

  test.each<[unknown, string]>([
    [{}, "invalid_redirect_uri"],
    [{ redirect_uris: [] }, "invalid_redirect_uri"],
    [{ redirect_uris: ["http://evil.example/"] }, "invalid_redirect_uri"],
    [{ redirect_uris: ["https://a.example/#x"] }, "invalid_redirect_uri"],
    [{ redirect_uris: ["https://*.example/"] }, "invalid_redirect_uri"],
    [{ redirect_uris: ["javascript:alert(1)"] }, "invalid_redirect_uri"],
    [{ redirect_uris: ["data:text/html,x"] }, "invalid_redirect_uri"],
    [{ redirect_uris: [7] }, "invalid_redirect_uri"],
    [{ redirect_uris: Array.from({ length: 21 }, (_, i) => `https://a.example/${i}`) }, "invalid_redirect_uri"],
    [{ redirect_uris: [callback], client_name: "x".repeat(101) }, "invalid_client_metadata"],
    [{ redirect_uris: [callback], client_name: "a\u0000b" }, "invalid_client_metadata"],
    [{ redirect_uris: [callback], grant_types: ["implicit"] }, "invalid_client_metadata"],
    [{ redirect_uris: [callback], response_types: ["token"] }, "invalid_client_metadata"],
    ["[]", "invalid_request"],
    ["{", "invalid_request"],
  ])("a client that registers itself by %j is refused", async (metadata, error) => {
    expect(await register(metadata)).toMatchObject({ status: 400, body: { error } });
  });

  test("a client that registers itself has no way around the page that says where it leads: devices need an app", async () => {
    const { body } = await register({ redirect_uris: [callback] });
    const form = new URLSearchParams({ client_id: String(body["client_id"]) });
    const refused = await fetch(`${server.url}/oauth/device_authorization`, { method: "POST", body: form });
    expect([refused.status, await refused.json()]).toEqual([
      400,
      expect.objectContaining({ error: "unauthorized_client" }),
    ]);
  });

  test("a client that registers itself may be called back by its own scheme", async () => {
    const redirect_uris = ["cursor://anysphere.cursor-retrieval/oauth/callback", "com.example.app:/callback"];
    expect(await register({ redirect_uris })).toMatchObject({ status: 201, body: { redirect_uris } });
  });

  // Last of all, as it uses up what this address may do.
  test("registrations of one address are bounded, and told so in the form of OAuth", async () => {
    const answers = await Promise.all(Array.from({ length: 60 }, () => register({ redirect_uris: [callback] })));
    expect(answers.filter(({ status }) => status === 201).length).toBeWithin(1, 31);
    const refused = answers.filter(({ status }) => status !== 201);
    for (const { status, body } of refused) expect([status, body["error"]]).toEqual([429, "temporarily_unavailable"]);
  });
});

describe("tools", () => {
  const connected = async (program: Program, path: string) => {
    const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
    await client.connect(new StreamableHTTPClientTransport(new URL(server.url + path), { authProvider: program }));
    return client;
  };

  test("tools are listed and called by a program that was told nothing but their address, once a person signed in", async () => {
    const program = new Program(host.document("/tools.json"));
    await expect(connected(program, "/mcp/weather")).rejects.toBeInstanceOf(UnauthorizedError);
    expect(program.sentTo.searchParams.get("resource")).toBe(`${server.url}/mcp/weather`);
    expect((await olga.open(program.sentTo)).text).toContain("<strong>weather</strong> (<bdi>The weather</bdi>)");
    await program.signIn(olga, "/mcp/weather");
    const client = await connected(program, "/mcp/weather");
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["forecast"]);
    expect((await client.callTool({ name: "forecast" })).content).toEqual([{ type: "text", text: "Rain" }]);
    await client.close();
    const headers = { authorization: `Bearer ${program.stored?.access_token}`, "content-type": "application/json" };
    for (const path of ["/mcp", "/mcp/other"]) {
      const elsewhere = await fetch(server.url + path, { method: "POST", headers, body: "{}" });
      expect([path, elsewhere.status]).toEqual([path, 401]);
    }
  });
});

test("an installation that lets nobody register, and reads no documents, says so in its metadata, and does neither", async () => {
  const yaml = "oauth: { registration: off, client_documents: off }\n";
  await using closed = await startHeadrace({ yaml, documentFetch: { resolve: host.resolve, ca: host.ca } });
  const metadata = await (await fetch(`${closed.url}/.well-known/oauth-authorization-server`)).json();
  expect(metadata).not.toHaveProperty("registration_endpoint");
  expect(metadata).toMatchObject({ client_id_metadata_document_supported: false });
  const body = JSON.stringify({ redirect_uris: [callback] });
  const headers = { "content-type": "application/json" };
  expect((await fetch(`${closed.url}/oauth/register`, { method: "POST", body, headers })).status).toBe(404);
  const owner = await setUp(closed);
  const parameters = { client_id: host.document("/closed.json"), redirect_uri: callback, response_type: "code" };
  expect((await owner.open(`/oauth/authorize?${new URLSearchParams(parameters)}`)).status).toBe(400);
  expect(host.asked).not.toContain("/closed.json");
});
