// An MCP server that tells who asked, with accounts and an authorization server of its own, as those of other companies have.
import { createHash, randomBytes } from "node:crypto";
import { type AuthInfo, fromJsonSchema, McpServer, oauthMetadataResponse } from "@modelcontextprotocol/server";
import { type McpFixture, type McpFixtureOptions, startMcpServer } from "./mcp-server.ts";

export interface AskingServer extends McpFixture {
  /** What each call of a tool was, in order: by whom, and with which words. */
  calls: { person: string; tool: string; text: string }[];
  /** Access tokens that it gave, by person. */
  tokens: Map<string, string>;
  /** How often a token was refreshed. */
  refreshes(): number;
  /** Tokens that were given so far are good no more; refresh tokens are, unless `whole`. */
  expire(whole?: boolean): void;
}

interface Grant {
  person: string;
  clientId: string;
  scope: string;
  challenge?: string;
  redirectUri?: string;
}

type Fields = Record<string, string>;

/** People who have an account there: its page of consent has a button for each. */
export const accountsThere = ["ann@there.example", "ben@there.example"] as const;

export interface AskingOptions extends Pick<McpFixtureOptions, "eras"> {
  /** What its tools say of themselves to whoever lists them; left out: the same to everybody. */
  describedTo?(person: string): string;
}

export function startAskingServer(options: AskingOptions = {}): AskingServer {
  const accounts = new Accounts();
  const calls: AskingServer["calls"] = [];
  const fixture = startMcpServer(() => makeServer(calls, options), {
    ...options,
    ...{
      elsewhere: (request) => accounts.answer(request, fixture.origin),
      admit: (request) => accounts.admit(request, fixture),
    },
  });
  return {
    ...fixture,
    ...{
      calls,
      tokens: accounts.access,
      refreshes: () => accounts.refreshed,
      expire: (whole) => accounts.expire(whole),
    },
  };
}

function makeServer(calls: AskingServer["calls"], { describedTo }: AskingOptions): McpServer {
  const server = new McpServer({ name: "asking", version: "1.0.0" }, { capabilities: { tools: {} } });
  const inputSchema = fromJsonSchema<{ text?: string }>({ type: "object", properties: { text: { type: "string" } } });
  for (const name of ["whoami", "write-note"]) {
    const annotations = { readOnlyHint: name === "whoami" };
    const description = "Tells on whose account it works.";
    server.registerTool(name, { description, annotations, inputSchema }, async ({ text = "" }, { http }) => {
      const person = String(http?.authInfo?.extra?.["person"]);
      calls.push({ person, tool: name, text });
      return { content: [{ type: "text", text: `${name} was asked by ${person}.` }] };
    });
  }
  if (describedTo) {
    server.server.setRequestHandler("tools/list", (_request, { http }) => {
      const description = describedTo(String(http?.authInfo?.extra?.["person"]));
      return { tools: [{ name: "whoami", description, inputSchema: { type: "object" as const } }] };
    });
  }
  return server;
}

class Accounts {
  /** By token: whose it is. */
  readonly access = new Map<string, string>();
  refreshed = 0;
  readonly #clients = new Map<string, { redirects: string[]; secret: string }>();
  readonly #codes = new Map<string, Grant>();
  readonly #refresh = new Map<string, Grant>();

  expire(whole = false): void {
    this.access.clear();
    if (whole) this.#refresh.clear();
  }

  admit(request: Request, { origin }: McpFixture): AuthInfo | Response {
    const token = request.headers.get("authorization")?.replace(/^Bearer /i, "") ?? "";
    const person = this.access.get(token);
    const expiresAt = Math.floor(Date.now() / 1000) + 3600;
    if (person !== undefined) return { token, clientId: "client", scopes: ["notes"], expiresAt, extra: { person } };
    const metadata = `${origin}/.well-known/oauth-protected-resource/mcp`;
    const challenge = `Bearer error="invalid_token", scope="notes", resource_metadata="${metadata}"`;
    return Response.json({ error: "invalid_token" }, { status: 401, headers: { "www-authenticate": challenge } });
  }

  async answer(request: Request, origin: string): Promise<Response | undefined> {
    const url = new URL(request.url);
    const described = oauthMetadataResponse(request, {
      oauthMetadata: {
        issuer: origin,
        authorization_endpoint: `${origin}/authorize`,
        token_endpoint: `${origin}/token`,
        registration_endpoint: `${origin}/register`,
        response_types_supported: ["code"],
        grant_types_supported: ["authorization_code", "refresh_token"],
        code_challenge_methods_supported: ["S256"],
        token_endpoint_auth_methods_supported: ["none", "client_secret_basic", "client_secret_post"],
        authorization_response_iss_parameter_supported: true,
      },
      resourceServerUrl: new URL(`${origin}/mcp`),
      scopesSupported: ["notes"],
    });
    if (described !== undefined) return described;
    if (url.pathname === "/register") return this.#register((await request.json()) as { redirect_uris?: string[] });
    if (url.pathname === "/authorize") return this.#authorize(url, origin);
    if (url.pathname !== "/token") return undefined;
    return this.#token(Object.fromEntries(new URLSearchParams(await request.text())), request, origin);
  }

  #register({ redirect_uris: redirects = [], ...others }: { redirect_uris?: string[] }): Response {
    const [id, secret] = [`client-${this.#clients.size + 1}`, secretText()];
    this.#clients.set(id, { redirects, secret });
    const made = { ...others, redirect_uris: redirects, client_id: id };
    const isPublic = (others as Fields)["token_endpoint_auth_method"] === "none";
    return Response.json(isPublic ? made : { ...made, client_secret: secret, client_secret_expires_at: 0 }, {
      status: 201,
    });
  }

  /** A page with a link for each account; whoever follows one has consented. */
  #authorize(url: URL, origin: string): Response {
    const asked: Fields = Object.fromEntries(url.searchParams);
    const { client_id: clientId = "", redirect_uri: redirectUri = "", person, state = "", scope = "notes" } = asked;
    if (!this.#clients.get(clientId)?.redirects.includes(redirectUri)) return refused("invalid_client");
    if (asked["resource"] !== `${origin}/mcp` || asked["code_challenge_method"] !== "S256")
      return refused("invalid_target");
    if (person !== undefined) {
      const code = secretText();
      this.#codes.set(code, { person, clientId, scope, challenge: asked["code_challenge"] ?? "", redirectUri });
      return Response.redirect(`${redirectUri}?${new URLSearchParams({ code, state, iss: origin })}`);
    }
    const links = accountsThere.map((name) => {
      const query = new URLSearchParams({ ...asked, person: name });
      return `<p><a href="/authorize?${query.toString().replaceAll("&", "&amp;")}">Continue as ${name}</a></p>`;
    });
    const html = `<!doctype html><html lang="en"><title>Accounts there</title><h1>Which account?</h1>${links.join("")}`;
    return new Response(html, { headers: { "content-type": "text/html" } });
  }

  #token(fields: Fields, request: Request, origin: string): Response {
    if (fields["resource"] !== `${origin}/mcp`) return refused("invalid_target");
    const basic = /^Basic (.+)$/.exec(request.headers.get("authorization") ?? "")?.[1];
    const [basicId] = basic === undefined ? [undefined] : atob(basic).split(":").map(decodeURIComponent);
    const clientId = fields["client_id"] ?? basicId;
    const [given, kept] =
      fields["grant_type"] === "refresh_token"
        ? [fields["refresh_token"] ?? "", this.#refresh]
        : [fields["code"] ?? "", this.#codes];
    const grant = kept.get(given);
    // Refresh tokens are good once, as codes are.
    kept.delete(given);
    if (grant === undefined || grant.clientId !== clientId) return refused("invalid_grant");
    if (kept === this.#codes) {
      const proof = createHash("sha256")
        .update(fields["code_verifier"] ?? "")
        .digest("base64url");
      if (proof !== grant.challenge || fields["redirect_uri"] !== grant.redirectUri) return refused("invalid_grant");
    } else this.refreshed += 1;
    const [token, refresh] = [secretText(), secretText()];
    this.access.set(token, grant.person);
    this.#refresh.set(refresh, { person: grant.person, clientId: grant.clientId, scope: grant.scope });
    const answer = {
      access_token: token,
      token_type: "Bearer",
      expires_in: 3600,
      refresh_token: refresh,
      scope: grant.scope,
    };
    return Response.json(answer, { headers: { "cache-control": "no-store" } });
  }
}

function secretText(): string {
  return randomBytes(24).toString("base64url");
}

function refused(error: string): Response {
  return Response.json({ error }, { status: 400 });
}
