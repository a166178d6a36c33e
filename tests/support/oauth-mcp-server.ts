// An MCP server with an authorization server of its own: it tells who asked, renews tokens once each, and says of itself what a test wants.
import { createHash, randomBytes } from "node:crypto";
import type { McpServer } from "../../src/domain/tools/mcp-server.ts";

export type OAuthMcpServer = ReturnType<typeof startOAuthMcpServer>;

interface Grant {
  user: string;
  isOver: boolean;
}

interface Code {
  user: string;
  clientId: string;
  redirectUri: string;
  challenge: string;
  resource: string;
}

/** Parts of what it says of itself, in the place of what is so. */
export interface Sayings {
  resource?: Record<string, unknown>;
  authorization?: Record<string, unknown>;
  /** In the place of its own issuer, on the way back. */
  iss?: string | null;
}

const random = () => randomBytes(16).toString("hex");

export function startOAuthMcpServer() {
  const access = new Map<string, { grant: Grant; resource: string }>();
  const refresh = new Map<string, { grant: Grant; isUsed: boolean; resource: string; clientId: string }>();
  const codes = new Map<string, Code>();
  const state = {
    says: {} as Sayings,
    lifeSeconds: 3_600,
    /** Whether it gives a token that renews. */
    renews: true,
    /** The token endpoint answers with this. */
    failure: undefined as number | undefined,
    /** Clients as they asked to be registered. */
    registrations: [] as Record<string, unknown>[],
    /** It has no metadata of itself as a resource (RFC 9728). */
    isUndescribed: false,
    counts: { registered: 0, renewed: 0, reused: 0, revoked: 0, redeemed: 0, failed: 0 },
  };

  const give = (grant: Grant, clientId: string, resource: string) => {
    const [token, renewal] = [random(), random()];
    access.set(token, { grant, resource });
    refresh.set(renewal, { grant, isUsed: false, resource, clientId });
    const more = state.renews ? { refresh_token: renewal } : {};
    return Response.json({ access_token: token, token_type: "Bearer", expires_in: state.lifeSeconds, ...more });
  };
  const refused = (error: string, status = 400) => Response.json({ error }, { status });

  async function tokens(request: Request): Promise<Response> {
    if (state.failure !== undefined) {
      state.counts.failed++;
      return new Response("down", { status: state.failure });
    }
    const form = new URLSearchParams(await request.text());
    const get = (name: string) => form.get(name) ?? "";
    if (get("grant_type") === "refresh_token") {
      const found = refresh.get(get("refresh_token"));
      if (!found || found.grant.isOver || found.clientId !== get("client_id")) return refused("invalid_grant");
      if (found.isUsed) {
        // Whoever uses one twice may be a thief: all of the sign-in ends (RFC 9700, 4.14.2).
        found.grant.isOver = true;
        state.counts.reused++;
        return refused("invalid_grant");
      }
      found.isUsed = true;
      state.counts.renewed++;
      await Bun.sleep(30);
      return give(found.grant, found.clientId, found.resource);
    }
    const code = codes.get(get("code"));
    codes.delete(get("code"));
    const proven = createHash("sha256").update(get("code_verifier")).digest("base64url");
    const isFine = code && code.challenge === proven && code.redirectUri === get("redirect_uri");
    if (!isFine || code.clientId !== get("client_id") || code.resource !== get("resource")) {
      return refused("invalid_grant");
    }
    state.counts.redeemed++;
    return give({ user: code.user, isOver: false }, code.clientId, code.resource);
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const url = new URL(request.url);
      const { origin } = url;
      const wellKnown = "/.well-known/oauth-protected-resource/mcp";
      if (state.isUndescribed && url.pathname.startsWith("/.well-known/oauth-protected-resource")) {
        return new Response(null, { status: 404 });
      }
      if (url.pathname === wellKnown) {
        return Response.json({ resource: `${origin}/mcp`, authorization_servers: [origin], ...state.says.resource });
      }
      if (url.pathname === "/.well-known/oauth-authorization-server") {
        return Response.json({
          issuer: origin,
          authorization_endpoint: `${origin}/authorize`,
          token_endpoint: `${origin}/token`,
          registration_endpoint: `${origin}/register`,
          revocation_endpoint: `${origin}/revoke`,
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"],
          token_endpoint_auth_methods_supported: ["none"],
          authorization_response_iss_parameter_supported: true,
          ...state.says.authorization,
        });
      }
      if (url.pathname === "/register") {
        state.counts.registered++;
        const asked = (await request.json()) as Record<string, unknown>;
        state.registrations.push(asked);
        return Response.json({ ...asked, client_id: `client-${state.counts.registered}` }, { status: 201 });
      }
      if (url.pathname === "/token") return tokens(request);
      if (url.pathname === "/revoke") {
        const found = refresh.get(new URLSearchParams(await request.text()).get("token") ?? "");
        if (found) found.grant.isOver = true;
        state.counts.revoked++;
        return new Response(null, { status: 200 });
      }
      const known = access.get(request.headers.get("authorization")?.replace("Bearer ", "") ?? "");
      if (!known || known.grant.isOver) {
        const challenge = state.isUndescribed ? "Bearer" : `Bearer resource_metadata="${origin}${wellKnown}"`;
        return new Response("", { status: 401, headers: { "www-authenticate": challenge } });
      }
      return Response.json({ who: known.grant.user });
    },
  });
  const origin = `http://127.0.0.1:${server.port}`;

  return {
    state,
    origin,
    url: `${origin}/mcp`,
    /** The person signs in there and allows it: gives the address to which the browser is sent back. */
    allow(authorizationUrl: string, user: string): string {
      const asked = new URL(authorizationUrl).searchParams;
      const get = (name: string) => asked.get(name) ?? "";
      const code = random();
      codes.set(code, {
        ...{ user, clientId: get("client_id"), redirectUri: get("redirect_uri"), resource: get("resource") },
        challenge: get("code_challenge"),
      });
      const back = new URL(get("redirect_uri"));
      back.searchParams.set("code", code);
      back.searchParams.set("state", get("state"));
      const { iss = origin } = state.says;
      if (iss !== null) back.searchParams.set("iss", iss);
      return back.href;
    },
    /** Whoever the server takes the token for; undefined: nobody. */
    async whoIs(token: string | undefined): Promise<string | undefined> {
      const response = await fetch(`${origin}/mcp`, { headers: { authorization: `Bearer ${token}` } });
      return response.ok ? ((await response.json()) as { who: string }).who : undefined;
    },
    /** Ends all that anybody allowed. */
    revokeAll() {
      for (const { grant } of refresh.values()) grant.isOver = true;
    },
    close: () => server.stop(true),
  };
}

/** An MCP server at which each person has an account of their own. */
export function personalMcpServer(name: string, url: string, more: Partial<McpServer> = {}): McpServer {
  return {
    ...{ name, title: null, description: null, place: { kind: "http", url } },
    credentials: { kind: "person", issuer: null, clientId: null, clientSecret: null, scopes: null },
    ...{ environments: null, accounts: null, tools: null, approval: "all", sharing: "person" },
    ...{ timeoutMs: 10_000, maxResultBytes: 1_000_000, maxConcurrency: 10, nanoUsdPerCall: null },
    ...{ local: false, enabled: true, isDeclared: false, ...more },
  };
}

/** MCP servers that a test changes. */
export function changingMcpServers(initial: readonly McpServer[]) {
  let servers = initial;
  return {
    all: () => servers,
    find: (name: string) => servers.find((server) => server.name === name),
    set(changed: readonly McpServer[]) {
      servers = changed;
    },
  };
}
