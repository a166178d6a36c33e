// The endpoints for people's accounts at MCP servers, with a list of connected people for operators.
import { z } from "zod";
import { Attempts } from "../../../accounts/attempts.ts";
import { forbidden, GatewayError } from "../../../base/errors.ts";
import type { LimitStore } from "../../../domain/limits/limits.ts";
import type { PersonStore } from "../../../domain/people/person.ts";
import { type McpServers, mcpServerName } from "../../../domain/tools/mcp-server.ts";
import type { StoredToolConnection, ToolConnectionStore } from "../../../domain/tools/tool-connection.ts";
import { mayUseServer } from "../../../domain/tools/usable-server.ts";
import type { IncomingRequest } from "../../../http1/message.ts";
import { type ConnectFlow, clientDocumentPath } from "../../../mcp/connections/connect-flow.ts";
import { isConnectedTo, type PersonalServer, personalServer } from "../../../mcp/connections/personal-server.ts";
import { requireScope } from "../../../policy/authorize.ts";
import {
  connectedPersonShape,
  connectToolsRequest,
  endedToolConnectionShape,
  type ToolConnectionWire,
  toolConnectingShape,
  toolConnectionShape,
} from "../../../wire/tools/connections.ts";
import type { ApiRoute, PersonPrincipal } from "../../exchange/route.ts";
import { adminEndpoints } from "../admin/admin-endpoint.ts";
import { type EndpointDeps, personEndpoints } from "../endpoint.ts";
import { listOf, pageOf, pageQuery, wholeListOf } from "../list.ts";

export interface ToolConnectionRouteDeps extends EndpointDeps {
  mcpServers: Pick<McpServers, "all" | "find">;
  toolConnections: Pick<ToolConnectionStore, "list" | "listOf">;
  connectFlow: Pick<ConnectFlow, "begin" | "end" | "clientDocument">;
  people: Pick<PersonStore, "membershipsOf">;
  limits: Pick<LimitStore, "admit">;
  pageOrigin(req: IncomingRequest): string | undefined;
}

/**
 * Maximum connection attempts per minute. Each attempt sends several requests to the MCP server and its authorization
 * server.
 */
const startsPerMinute = 20;

const endpoint = personEndpoints<ToolConnectionRouteDeps>({
  tag: "Tools",
  errors: ["insufficient_scope"],
  admit(principal) {
    requireScope(principal, "tools:use");
    return principal;
  },
});
const adminEndpoint = adminEndpoints<ToolConnectionRouteDeps>();
const serverParameter = [{ name: "server", in: "path", description: "Name of the MCP server." }] as const;
const connectionList = wholeListOf(toolConnectionShape, "ToolConnectionList");
const personList = listOf(connectedPersonShape, "ConnectedPersonList");
const personQuery = z.object({
  ...pageQuery,
  server: z
    .string()
    .max(24)
    .optional()
    .meta({ description: "the name of an MCP server; only its connections are listed" }),
});

export function toolConnectionRoutes(deps: ToolConnectionRouteDeps): ApiRoute[] {
  return [list(deps), connect(deps), end(deps), listPeople(deps), document(deps)];
}

const list = endpoint("GET", "/v1/tools/connections", {
  operationId: "listToolConnections",
  summary: "List the MCP servers that use your own account, with the state of your connections",
  description:
    "Lists the servers of the requested account in one page. Connections that you may no longer use come last. Tokens are never shown.",
  response: { description: "The servers.", json: connectionList },
  async answer({ deps: { mcpServers, toolConnections }, principal }) {
    const of = { accountId: principal.account.id, personId: principal.person.id };
    const connected = new Map((await toolConnections.listOf(of)).map((one) => [one.server, one]));
    const usable = mcpServers.all().flatMap((server) => {
      const personal = mayUseServer(server, principal) ? personalServer(server) : undefined;
      if (!personal) return [];
      const { name, title } = server;
      const connection = connected.get(name);
      connected.delete(name);
      return [toWire({ server: name, title, ...stateOf(connection, personal) }, connection)];
    });
    const unused = [...connected.values()].map((connection) =>
      toWire({ server: connection.server, title: null, state: "unused", broken_because: null }, connection),
    );
    const data: ToolConnectionWire[] = [...usable, ...unused];
    return { object: "list", data };
  },
});

const connect = endpoint("POST", "/v1/tools/connections", {
  operationId: "connectTools",
  summary: "Begin to connect your account at an MCP server",
  description:
    "Only in a browser session: open `url` in the browser. The grant is stored for you as a member of this account, and replaces an earlier connection.",
  requestBody: connectToolsRequest,
  example: { server: "github" },
  errors: ["permission_denied", "not_found", "upstream_error", "rate_limit_exceeded", "service_unavailable"],
  response: { description: "The URL to open.", json: toolConnectingShape },
  async answer({ deps, exchange, principal, body: { server } }) {
    const { id: personId, sessionId } = principal.person;
    const pageOrigin = deps.pageOrigin(exchange.req);
    if (sessionId === null || pageOrigin === undefined) throw needsBrowser();
    const rule = { id: `connect-tools:${personId}`, limit: startsPerMinute, windowSeconds: 60 };
    await new Attempts(deps.limits).count([rule], "Too many attempts to connect an account.");
    const membershipId = await membershipOf(deps, principal);
    const url = await deps.connectFlow.begin(server, { principal, personId, membershipId, sessionId, pageOrigin });
    return { object: "tool_connection.begun", server, url };
  },
});

const end = endpoint("DELETE", "/v1/tools/connections/:server", {
  operationId: "disconnectTools",
  summary: "End the connection of your account at an MCP server",
  description:
    "The tokens are deleted here. They are also revoked at the authorization server that issued them, if it supports that.",
  parameters: serverParameter,
  response: { description: "The connection is ended.", json: endedToolConnectionShape },
  async answer({ deps, principal, id: server, origin }) {
    const of = { accountId: principal.account.id, personId: principal.person.id };
    const revoked = await deps.connectFlow.end(server, of, principal, origin);
    return { object: "tool_connection.deleted", server, deleted: true, revoked };
  },
});

const listPeople = adminEndpoint("GET", "/v1/admin/tools/connections", {
  operationId: "adminListToolConnections",
  summary: "List the per-user connections to MCP servers",
  description: "Newest first. Tokens and the users' identities at the server are not shown.",
  query: personQuery,
  response: { description: "One page of connections.", json: personList },
  async answer({ deps: { toolConnections }, query: { server, after, limit } }) {
    const found = await toolConnections.list({ server }, { after, limit: limit + 1 });
    return pageOf(
      found.map(({ id, server: name, personId, accountId, brokenBecause, createdAt, lastUsedAt }) => ({
        object: "tool_connection.person" as const,
        ...{ id, server: name, person_id: personId, account_id: accountId },
        state: brokenBecause === null ? ("connected" as const) : ("broken" as const),
        ...{ connected_at: createdAt, last_used_at: lastUsedAt },
      })),
      limit,
    );
  },
});

/**
 * Name of the client metadata document that all MCP servers once shared. Old connections still renew tokens with its
 * URL as their client id. Its redirect URI receives no sign-in, because no MCP server can have this name.
 */
const formerClient = "headrace.json";

/** Serves the client ID metadata document. It is public, because authorization servers fetch it. */
function document({ connectFlow }: ToolConnectionRouteDeps): ApiRoute {
  return {
    method: "GET",
    path: clientDocumentPath,
    access: "public",
    throttle: "file",
    doc: {
      operationId: "toolClientDocument",
      summary: "Retrieve the client metadata of this gateway for the authorization servers of MCP servers",
      description:
        "A Client ID Metadata Document. Its URL is the `client_id` for per-user connections to this MCP server.",
      tag: "Tools",
      errors: ["not_found"],
      parameters: serverParameter,
      response: {
        description: "The document.",
        json: z
          .object({
            client_id: z.string(),
            client_name: z.string(),
            client_uri: z.string(),
            redirect_uris: z.array(z.string()),
            grant_types: z.array(z.string()),
            response_types: z.array(z.string()),
            token_endpoint_auth_method: z.literal("none"),
          })
          .meta({ id: "ToolClientDocument" }),
      },
    },
    handle({ params: { server = "" } }) {
      const isKnown = server === formerClient || mcpServerName.test(server);
      if (!isKnown) throw new GatewayError("not_found", "There is no client of this name.");
      return Response.json(connectFlow.clientDocument(server), { headers: { "cache-control": "public, max-age=300" } });
    },
  };
}

async function membershipOf({ people }: ToolConnectionRouteDeps, { account, person }: PersonPrincipal) {
  const membership = (await people.membershipsOf(person.id)).find(({ accountId }) => accountId === account.id);
  if (membership) return membership.id;
  throw forbidden("You are no member of this account any more. Choose another one of yours.");
}

function needsBrowser() {
  return forbidden("Accounts are connected at a browser: sign in there and open /tools.");
}

type Stated = Pick<ToolConnectionWire, "server" | "title" | "state" | "broken_because">;

function stateOf(
  connection: StoredToolConnection | undefined,
  server: PersonalServer,
): Pick<ToolConnectionWire, "state" | "broken_because"> {
  if (!connection) return { state: "none", broken_because: null };
  const because = connection.brokenBecause ?? movedSince(server, connection);
  return { state: because === null ? "connected" : "broken", broken_because: because };
}

function movedSince(server: PersonalServer, connection: StoredToolConnection): string | null {
  if (isConnectedTo(server, connection)) return null;
  const what = connection.url === server.url ? "has another authorization server" : "is at another address";
  return `The server ${what} now, to which no token goes.`;
}

function toWire(stated: Stated, connection: StoredToolConnection | undefined): ToolConnectionWire {
  return {
    object: "tool_connection",
    ...stated,
    issuer: connection?.issuer ?? null,
    scopes: [...(connection?.scopes ?? [])],
    connected_at: connection?.createdAt ?? null,
    last_used_at: connection?.lastUsedAt ?? null,
  };
}
