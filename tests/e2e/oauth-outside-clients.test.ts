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

describe("an OAuth client with a client ID metadata document", () => {
  test("signs a person in with the MCP SDK and a metadata document for one resource, and refreshes", async () => {
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

  test("asks for consent with the host of a client's metadata document and the redirect target", async () => {
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

  test("fetches no metadata document before the person signs in", async () => {
    const url = host.document("/unseen.json");
    const asked = `${server.url}/oauth/authorize?${new URLSearchParams({ client_id: url, response_type: "code" })}`;
    const response = await fetch(asked, { redirect: "manual" });
    expect([response.status, response.headers.get("location")]).toEqual([303, expect.stringMatching(/^\/sign-in/)]);
    expect(host.asked).not.toContain("/unseen.json");
  });

  test("refuses an invalid metadata document and an unlisted redirect URI without a redirect", async () => {
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

  test("refuses scopes and grants that a metadata document client was not allowed", async () => {
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

describe("a dynamically registered OAuth client", () => {
  test("signs a person in for a registered client with the MCP SDK, and refuses its code to others", async () => {
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

  test("serves the same metadata under another name of this machine, with a valid token", async () => {
    const { port } = new URL(server.url);
    for (const name of ["localhost", "127.0.0.1"]) {
      const token = await new Program().signIn(olga, "/mcp", `http://${name}:${port}`);
      expect(decodeJwt(token)).toMatchObject({ iss: server.url, aud: `${server.url}/mcp` });
    }
  });

  test("registers a client with oauth4webapi and returns the allowed metadata", async () => {
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

  test("asks for consent to a registered client as an unverified one", async () => {
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
  ])("refuses the registration %j", async (metadata, error) => {
    expect(await register(metadata)).toMatchObject({ status: 400, body: { error } });
  });

  test("refuses the device flow to a registered client, since that skips the page with the redirect target", async () => {
    const { body } = await register({ redirect_uris: [callback] });
    const form = new URLSearchParams({ client_id: String(body["client_id"]) });
    const refused = await fetch(`${server.url}/oauth/device_authorization`, { method: "POST", body: form });
    expect([refused.status, await refused.json()]).toEqual([
      400,
      expect.objectContaining({ error: "unauthorized_client" }),
    ]);
  });

  test("accepts a custom scheme as a registered client's redirect URI", async () => {
    const redirect_uris = ["cursor://anysphere.cursor-retrieval/oauth/callback", "com.example.app:/callback"];
    expect(await register({ redirect_uris })).toMatchObject({ status: 201, body: { redirect_uris } });
  });

  // Last of all, as it uses up what this address may do.
  test("limits registrations per address with an OAuth error", async () => {
    const answers = await Promise.all(Array.from({ length: 60 }, () => register({ redirect_uris: [callback] })));
    expect(answers.filter(({ status }) => status === 201).length).toBeWithin(1, 31);
    const refused = answers.filter(({ status }) => status !== 201);
    for (const { status, body } of refused) expect([status, body["error"]]).toEqual([429, "temporarily_unavailable"]);
  });
});

describe("MCP tools with OAuth discovery", () => {
  const connected = async (program: Program, path: string) => {
    const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
    await client.connect(new StreamableHTTPClientTransport(new URL(server.url + path), { authProvider: program }));
    return client;
  };

  test("lists and calls tools from their address alone after a person signs in", async () => {
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

test("advertises and allows neither registration nor metadata documents if both are off", async () => {
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
