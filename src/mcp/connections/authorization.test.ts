// Private addresses of authorization servers: permitted only if the operator configured them.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { type DocumentHost, startDocumentHost } from "../../../tests/support/client-documents.ts";
import { personalMcpServer } from "../../../tests/support/oauth-mcp-server.ts";
import { issuerOf, ToolAuthorization } from "./authorization.ts";
import { type PersonalServer, personalServer } from "./personal-server.ts";

/** Server and authorization server have addresses that are not public. */
let tools: DocumentHost;
let login: DocumentHost;

beforeEach(() => {
  tools = startDocumentHost();
  login = startDocumentHost();
});

afterEach(() => {
  tools[Symbol.dispose]();
  login[Symbol.dispose]();
});

const authorization = () =>
  new ToolAuthorization({
    rules: { allowLoopback: false },
    resolve: tools.resolve,
    ca: `${tools.ca}\n${login.ca}`,
  });

function serverWith(issuer: string | null): PersonalServer {
  const credentials = { kind: "person", issuer, clientId: null, clientSecret: null, scopes: null } as const;
  const server = personalServer(personalMcpServer("crm", `${tools.origin}/mcp`, { credentials }));
  if (!server) throw new Error("It is no personal server.");
  return server;
}

function describe(at: DocumentHost, changes: Record<string, unknown> = {}): void {
  const { origin } = at;
  const metadata = {
    ...{ issuer: origin, authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token` },
    ...{ registration_endpoint: `${origin}/register`, response_types_supported: ["code"] },
    ...{ code_challenge_methods_supported: ["S256"], ...changes },
  };
  at.answers.set("/.well-known/oauth-authorization-server", () => Response.json(metadata));
  at.answers.set("/register", () => Response.json({ client_id: "ours", redirect_uris: ["https://gw.example/back"] }));
}

function toolsName(...issuers: string[]): void {
  const reported = { resource: `${tools.origin}/mcp`, authorization_servers: issuers };
  tools.answers.set("/.well-known/oauth-protected-resource/mcp", () => Response.json(reported));
}

const asClient = { redirectUri: "https://gw.example/back", name: "Headrace", uri: "https://gw.example" };

test("reaches a private server at its own origin, also as its own authorization server", async () => {
  describe(tools);
  for (const say of [
    () => toolsName(tools.origin),
    () => void tools.answers.delete("/.well-known/oauth-protected-resource/mcp"),
  ]) {
    say();
    const found = await authorization().find(serverWith(null));
    expect(found.metadata.issuer).toBe(tools.origin);
    expect(await authorization().register(serverWith(null), found, asClient)).toMatchObject({ clientId: "ours" });
  }
});

test("reaches another private authorization server only if the operator configured it", async () => {
  describe(login);
  toolsName(login.origin);
  await expect(authorization().find(serverWith(null))).rejects.toMatchObject({
    ...{ code: "upstream_error", detail: "tool authorization: find: address_not_public" },
  });
  expect(login.asked).toEqual([]);
  const found = await authorization().find(serverWith(`${login.origin}/`));
  expect(found.metadata.issuer).toBe(login.origin);
  expect(await authorization().register(serverWith(login.origin), found, asClient)).toMatchObject({ clientId: "ours" });
});

test("uses only the configured authorization server, and refuses if the MCP server does not list it", async () => {
  describe(tools);
  describe(login);
  toolsName(tools.origin);
  await expect(authorization().find(serverWith(login.origin))).rejects.toMatchObject({
    detail: "tool authorization: find: other_issuer",
  });
  toolsName(tools.origin, login.origin);
  expect((await authorization().find(serverWith(login.origin))).metadata.issuer).toBe(login.origin);
});

test("refuses private or unencrypted endpoints in the metadata of a configured authorization server", async () => {
  const { port } = new URL(login.origin);
  describe(login, { registration_endpoint: `https://client.example:${Number(port) - 1}/register` });
  toolsName(login.origin);
  const found = await authorization().find(serverWith(login.origin));
  await expect(authorization().register(serverWith(login.origin), found, asClient)).rejects.toMatchObject({
    detail: "tool authorization: register: address_not_public",
  });
  for (const endpoint of ["token_endpoint", "registration_endpoint", "revocation_endpoint"]) {
    describe(login, { [endpoint]: `http://client.example:${port}/in-the-clear` });
    await expect(authorization().find(serverWith(login.origin))).rejects.toMatchObject({
      detail: "tool authorization: find: not_https",
    });
  }
});

test("refreshes and revokes tokens at a configured private authorization server, but at no other private address", async () => {
  describe(login, { revocation_endpoint: `${login.origin}/revoke` });
  login.answers.set("/token", () => Response.json({ access_token: "second", token_type: "Bearer" }));
  login.answers.set("/revoke", () => new Response(null, { status: 200 }));
  toolsName(login.origin);
  const { metadata, resource } = await authorization().find(serverWith(login.origin));
  const url = `${tools.origin}/mcp`;
  const given = { accessToken: "first", refreshToken: "renewal", client: { clientId: "ours" }, resource };
  const named = { ...given, issuer: issuerOf(metadata, true) };
  expect(await authorization().renew(url, named)).toMatchObject({ access_token: "second" });
  expect(await authorization().revoke(url, named)).toBe(true);
  const unnamed = { ...given, issuer: issuerOf(metadata, false) };
  await expect(authorization().renew(url, unnamed)).rejects.toMatchObject({
    detail: "tool authorization: renew: address_not_public",
  });
  expect(await authorization().revoke(url, unnamed)).toBe(false);
});
