// The client and the scopes of the connect flow, tested with a real authorization server.
import { afterEach, beforeEach, expect, test } from "bun:test";
import { silentLog } from "../../../tests/support/data-directory.ts";
import { callerOf } from "../../../tests/support/link-world.ts";
import { manualClock } from "../../../tests/support/manual-clock.ts";
import {
  type OAuthMcpServer,
  personalMcpServer,
  startOAuthMcpServer,
} from "../../../tests/support/oauth-mcp-server.ts";
import type { ToolCredentials } from "../../domain/tools/mcp-server.ts";
import type {
  RegisteredToolClient,
  StoredToolConnection,
  ToolConnectionStore,
} from "../../domain/tools/tool-connection.ts";
import { ToolAuthorization } from "./authorization.ts";
import { ConnectFlow } from "./connect-flow.ts";
import { Revocations } from "./revocations.ts";
import { ToolSeals } from "./tool-tokens.ts";

const issuer = "https://gateway.example";
let upstream: OAuthMcpServer;
let known: StoredToolConnection | undefined;
let clients: RegisteredToolClient[];
const clock = manualClock();
const seals = new ToolSeals(new Uint8Array(32).fill(3));

beforeEach(() => {
  upstream = startOAuthMcpServer();
  known = undefined;
  clients = [];
});

afterEach(() => upstream.close());

/** Returns the query of the authorization URL for a browser at a page of `pageOrigin`. */
async function asked(
  credentials: Partial<Extract<ToolCredentials, { kind: "person" }>> = {},
  pageOrigin = issuer,
): Promise<URLSearchParams> {
  const server = personalMcpServer("crm", upstream.url, {
    credentials: { kind: "person", issuer: null, clientId: null, clientSecret: null, scopes: null, ...credentials },
  });
  const store: Pick<ToolConnectionStore, "find" | "findClient" | "putClient"> = {
    find: async () => known,
    findClient: async () => clients[0],
    putClient: async (client) => void clients.push(client),
  };
  const authorization = new ToolAuthorization({ rules: { allowLoopback: true }, resolve: async () => ["127.0.0.1"] });
  const flow = new ConnectFlow({
    servers: { find: () => server },
    store: store as ToolConnectionStore,
    ...{ authorization, seals, clock },
    revocations: new Revocations({ authorization, seals, clock, log: silentLog }),
    pending: { put: async () => {}, take: async () => undefined },
    issuer: () => issuer,
  });
  const by = { principal: callerOf("key_1"), personId: "person_1", membershipId: "mbr_1", sessionId: "ses_1" };
  return new URL(await flow.begin("crm", { ...by, pageOrigin })).searchParams;
}

test("prefers the client that the operator registered", async () => {
  upstream.state.says = { authorization: { client_id_metadata_document_supported: true } };
  const query = await asked({ clientId: "ours", clientSecret: "secret" });
  expect(query.get("client_id")).toBe("ours");
  expect(query.get("redirect_uri")).toBe(`${issuer}/oauth/tools/callback`);
  expect(upstream.state.counts.registered).toBe(0);
});

test("uses the gateway's client metadata document where accepted, if it lists the redirect address", async () => {
  upstream.state.says = { authorization: { client_id_metadata_document_supported: true } };
  const query = await asked();
  expect(query.get("client_id")).toBe(`${issuer}/.well-known/oauth-client/crm`);
  expect(query.get("redirect_uri")).toBe(`${issuer}/oauth/tool-callbacks/crm`);
  expect(upstream.state.counts.registered).toBe(0);
  expect((await asked({}, "http://localhost:1")).get("client_id")).toBe("client-1");
});

test("registers a client with a supported authentication method if documents are not accepted", async () => {
  expect((await asked()).get("client_id")).toBe("client-1");
  expect(upstream.state.registrations.at(-1)).toMatchObject({
    ...{
      token_endpoint_auth_method: "none",
      application_type: "web",
      redirect_uris: [`${issuer}/oauth/tool-callbacks/crm`],
      client_name: "Headrace (crm)",
    },
  });
  upstream.state.says = { authorization: { token_endpoint_auth_methods_supported: ["client_secret_post"] } };
  await asked({}, "http://127.0.0.1:1");
  expect(upstream.state.registrations.at(-1)).toMatchObject({
    ...{ token_endpoint_auth_method: "client_secret_post", application_type: "native" },
  });
});

test("requests newly required scopes beside granted ones, unless the operator configured the scopes", async () => {
  upstream.state.says = { resource: { scopes_supported: ["profile"] } };
  expect((await asked()).get("scope")).toBe("profile");
  known = {
    ...{ id: "tcn_1", server: "crm", accountId: "a", personId: "person_1", membershipId: "mbr_1", issuer: "i" },
    ...{ scopes: ["read"], wantedScopes: ["write"], createdAt: 0, lastUsedAt: null, brokenBecause: null },
    ...{ url: upstream.url, sealed: "", expiresAt: null, renewedAt: 0 },
  };
  expect((await asked()).get("scope")).toBe("profile read write");
  expect((await asked({ scopes: ["read"] })).get("scope")).toBe("read");
  known = { ...known, url: "https://elsewhere.example/mcp" };
  expect((await asked()).get("scope")).toBe("profile");
});

test("treats a server of 2025-03-26 without metadata as its own authorization server", async () => {
  upstream.state.isUndescribed = true;
  expect((await asked()).get("resource")).toBe(upstream.url);
});

test("reuses a registered client that outlasts the flow, and otherwise registers another", async () => {
  await asked();
  const [first] = clients;
  if (!first) throw new Error("No client was registered.");
  const client = seals.openClient(first, first.sealed);
  if (!client) throw new Error("The client does not open.");
  for (const [lasts, registered] of [
    [901, 1],
    [900, 2],
  ] as const) {
    const endsAt = clock.nowSeconds() + lasts;
    clients = [{ ...first, sealed: seals.sealClient(first, { ...client, endsAt }) }];
    await asked();
    expect(upstream.state.counts.registered).toBe(registered);
  }
});
