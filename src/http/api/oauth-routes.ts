// OAuth endpoints that clients call directly: tokens, device codes, revocation, introspection and metadata.
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import { appScopes } from "../../domain/people/app.ts";
import { mcpServerName } from "../../domain/tools/mcp-server.ts";
import { authorizeDevice } from "../../oauth/authorize-device.ts";
import { authenticateClient, type ClientAuthenticationDeps } from "../../oauth/client/authenticate-client.ts";
import { type RegistrationDeps, registerClient } from "../../oauth/client/register-client.ts";
import { type IntrospectionDeps, introspectToken } from "../../oauth/introspect-token.ts";
import { authorizationServerMetadata, protectedResourceMetadata } from "../../oauth/metadata.ts";
import { isSentOnce, presentParameters } from "../../oauth/parameters.ts";
import { type RevocationDeps, revokeToken } from "../../oauth/revoke-token.ts";
import { answerTokenRequest } from "../../oauth/token/flow.ts";
import type { ClientRequest, TokenDeps } from "../../oauth/token/stage.ts";
import { apiResource, resourceMetadataUrl, rootAsAsked, toolsResource } from "../../policy/credentials/resources.ts";
import { readJsonBody } from "../content/body.ts";
import { oauthErrorAnswer } from "../exchange/oauth-errors.ts";
import type { Exchange, PlainAnswer, PublicRoute, RouteDoc } from "../exchange/route.ts";
import { fieldsOf, readPairs } from "../pages/page.ts";
import {
  deviceDoc,
  introspectionDoc,
  mcpServerMetadataDoc,
  registrationDoc,
  resourceMetadataDoc,
  revocationDoc,
  serverMetadataDoc,
  tokenDoc,
  toolsMetadataDoc,
} from "../reference/oauth-docs.ts";
import { originOf } from "./changes.ts";

/** The dependencies of the OAuth endpoints, which share `tokens` and `changed`. */
export interface OAuthRouteDeps extends Omit<TokenDeps, "tokens">, ClientAuthenticationDeps {
  tokens: TokenDeps["tokens"] & RevocationDeps["tokens"];
  keys: RevocationDeps["keys"];
  /** Returns the public URL, without a slash at the end. */
  issuer: IntrospectionDeps["issuer"];
  /** Returns the base URL of the API, which ends in `/v1`. */
  audience(): string;
  clock: Clock;
  outsideClients: RegistrationDeps["outsideClients"];
  /** True if dynamic client registration is allowed. */
  mayRegister: boolean;
  /** Undefined if client ID metadata documents are not supported. */
  clientDocuments?: object | undefined;
}

/** Body limits of a client registration, several times what real clients send. */
const registrationLimits = { bodyBytes: 65_536, depth: 8 };

type Handler = (request: ClientRequest) => Promise<object>;

export function oauthRoutes(deps: OAuthRouteDeps): PublicRoute[] {
  const clients = { mayRegister: deps.mayRegister, hasDocuments: deps.clientDocuments !== undefined };
  const server = () => authorizationServerMetadata(deps.issuer(), clients);
  const api = () => protectedResourceMetadata(deps.audience(), appScopes, deps.issuer());
  const tools = (exchange: Exchange) => {
    const { server: name } = exchange.params;
    // Only the form of the name is checked, not whether the server exists, because the caller is not authenticated.
    if (name !== undefined && !mcpServerName.test(name)) throw unknownResource();
    const root = rootAsAsked(deps.issuer(), exchange.req.headers.get("host"));
    const resource = `${root}${toolsResource}${name === undefined ? "" : `/${name}`}`;
    return protectedResourceMetadata(resource, ["tools:use"], deps.issuer());
  };
  return [
    clientRoute("/oauth/token", tokenDoc, deps, (request) => answerTokenRequest(request, deps)),
    clientRoute("/oauth/device_authorization", deviceDoc, deps, (request) => authorizeDevice(request, deps)),
    clientRoute("/oauth/revoke", revocationDoc, deps, async (request) => {
      await revokeToken(request, deps);
      // RFC 7009, 2.2, lets clients ignore the body, but simple-oauth2 parses it as JSON.
      return {};
    }),
    clientRoute("/oauth/introspect", introspectionDoc, deps, (request) => introspectToken(request, deps)),
    registrationRoute(deps),
    metadataRoute("/.well-known/oauth-authorization-server", serverMetadataDoc, server),
    // RFC 9728, 3.1 and 3.3: the well-known path is followed by the path of the resource that the metadata describes.
    metadataRoute(resourceMetadataUrl(apiResource, ""), resourceMetadataDoc, api),
    metadataRoute(resourceMetadataUrl(toolsResource, ""), toolsMetadataDoc, tools),
    metadataRoute(resourceMetadataUrl(`${toolsResource}/:server`, ""), mcpServerMetadataDoc, tools),
  ];
}

function clientRoute(path: string, doc: RouteDoc, deps: OAuthRouteDeps, handler: Handler): PublicRoute {
  return {
    method: "POST",
    path,
    access: "public",
    throttle: "client",
    doc,
    handle: (exchange) => answerClient(exchange, () => clientRequest(exchange, deps).then(handler)),
    refuse: refuseClient,
  };
}

function registrationRoute(deps: OAuthRouteDeps): PublicRoute {
  const register = async (exchange: Exchange) => {
    if (!deps.mayRegister) throw new GatewayError("not_found", "Clients do not register by themselves here.");
    await deps.clientThrottle.requireRegistration(exchange.clientAddress);
    const { body } = await readJsonBody(exchange.req, registrationLimits);
    return registerClient(body, originOf(exchange, deps), deps);
  };
  return {
    method: "POST",
    path: "/oauth/register",
    access: "public",
    throttle: "client",
    doc: registrationDoc,
    handle: (exchange) => answerClient(exchange, () => register(exchange), 201),
    refuse: refuseClient,
  };
}

async function answerClient(exchange: Exchange, handle: () => Promise<object>, status = 200): Promise<PlainAnswer> {
  doNotKeep(exchange);
  try {
    const answer = await handle();
    return { status, headers: { "content-type": "application/json" }, body: JSON.stringify(answer) };
  } catch (error) {
    return refuseClient(exchange, error);
  }
}

/** Returns the OAuth error answer for a refused client. Rethrows an error that is no refusal. */
function refuseClient(exchange: Exchange, error: unknown): PlainAnswer {
  doNotKeep(exchange);
  const { answer, code, reason } = oauthErrorAnswer(error);
  exchange.line["code"] = code;
  if (reason !== undefined) exchange.line["detail"] = reason;
  return answer;
}

/** Sets the two headers with which RFC 6749, 5.1, forbids caching. */
function doNotKeep({ answerHeaders }: Exchange): void {
  answerHeaders["cache-control"] = "no-store";
  answerHeaders["pragma"] = "no-cache";
}

/**
 * Reads and authenticates a client's request. The cheap checks come first. Nothing else in the request is used before
 * the client is authenticated.
 */
async function clientRequest(exchange: Exchange, deps: OAuthRouteDeps): Promise<ClientRequest> {
  const { req, clientAddress } = exchange;
  await deps.clientThrottle.requireAddress(clientAddress);
  const pairs = await readPairs(req);
  const parameters = presentParameters(fieldsOf(pairs, isSentOnce));
  const resources = pairs.getAll("resource").filter((uri) => uri !== "");
  const origin = originOf(exchange, deps);
  const client = await authenticateClient(req.headers.get("authorization"), parameters, origin, deps);
  exchange.line["app"] = client.id;
  return { parameters, resources, client, origin };
}

/** Declares a metadata endpoint. Any web page may read it, because metadata is public. */
function metadataRoute(path: string, doc: RouteDoc, metadata: (exchange: Exchange) => object): PublicRoute {
  return {
    method: "GET",
    path,
    access: "public",
    throttle: "file",
    doc,
    handle: (exchange) => ({
      status: 200,
      headers: {
        "content-type": "application/json",
        "cache-control": "public, max-age=300",
        "access-control-allow-origin": "*",
      },
      body: JSON.stringify(metadata(exchange)),
    }),
  };
}

function unknownResource(): GatewayError {
  return new GatewayError("not_found", "server: must be the name of an MCP server: a-z, 0-9 and -, 24 at most.");
}
