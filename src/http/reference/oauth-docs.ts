// How the OAuth endpoints are described.
import { z } from "zod";
import { grantTypes } from "../../oauth/token/flow.ts";
import type { RouteDoc } from "../exchange/route.ts";

const oauthError = z
  .object({ error: z.string().describe("A code of RFC 6749 or 8628."), error_description: z.string() })
  .meta({ id: "OAuthError" });

const credentials = {
  client_id: z.string().optional().describe("The id of the app, where it is not in the `Authorization` header."),
  client_secret: z.string().optional().describe("The secret of a confidential app that does not use HTTP Basic."),
};

const resource = z
  .string()
  .optional()
  .describe(
    "RFC 8707: where the access token is to work, the base URL of the API, or the address of `/mcp` or `/mcp/{server}`; may be repeated. At the token endpoint it narrows what was allowed.",
  );

const authentication =
  "A confidential app authenticates by HTTP Basic, with its form-encoded `client_id` and secret, or by `client_id` and `client_secret` in the body; a public app sends its `client_id` alone.";

/** `internal_error` aside, which is answered as everywhere. */
const refusals: NonNullable<RouteDoc["otherResponses"]> = {
  400: { name: "OAuthRequestRefused", description: "The request is refused.", json: oauthError },
  401: {
    name: "OAuthInvalidClient",
    description: "`invalid_client`: the app could not be authenticated.",
    json: oauthError,
  },
  413: { name: "OAuthRequestTooLarge", description: "The body is larger than any request.", json: oauthError },
  429: {
    name: "OAuthTooManyRequests",
    description: "`temporarily_unavailable`: too many requests; `Retry-After` says when to retry.",
    json: oauthError,
  },
  503: {
    name: "OAuthUnavailable",
    description: "`temporarily_unavailable`: a store cannot be reached; retry.",
    json: oauthError,
  },
};

const form = { tag: "OAuth", requestType: "application/x-www-form-urlencoded", otherResponses: refusals } as const;

export const tokenDoc: RouteDoc = {
  ...form,
  operationId: "oauthToken",
  summary: "Exchange a code or a refresh token for tokens",
  description: `RFC 6749, with RFC 7636 (PKCE) and 8628 (devices). ${authentication} Every use of a refresh token gives another one in its place; the same request within ten seconds gets the same answer again, any other use of an old one ends all that the app was allowed.`,
  requestBody: z
    .object({
      ...credentials,
      grant_type: z.enum(grantTypes),
      code: z.string().optional().describe("For `authorization_code`."),
      redirect_uri: z
        .string()
        .optional()
        .describe("The one of the authorization request; required where it was in there."),
      code_verifier: z.string().optional().describe("For the `code_challenge` of the authorization request."),
      refresh_token: z.string().optional().describe("For `refresh_token`."),
      scope: z.string().optional().describe("For `refresh_token`: fewer scopes for this access token."),
      device_code: z.string().optional().describe("For devices."),
      resource,
    })
    .meta({ id: "OAuthTokenRequest" }),
  response: {
    description: "The tokens. They are shown once.",
    json: z
      .object({
        access_token: z.string().describe("A JWT (RFC 9068), to be sent as `Authorization: Bearer`."),
        token_type: z.literal("Bearer"),
        expires_in: z.int().describe("Seconds that the access token lives."),
        refresh_token: z.string(),
        scope: z.string().describe("The scopes of the access token, separated by spaces."),
      })
      .meta({ id: "OAuthTokens" }),
  },
};

export const deviceDoc: RouteDoc = {
  ...form,
  operationId: "oauthDeviceAuthorization",
  summary: "Begin a sign-in on a device",
  description: `RFC 8628: show the user code and the address, and ask the token endpoint every \`interval\` seconds. ${authentication}`,
  requestBody: z
    .object({
      ...credentials,
      scope: z.string().optional().describe("Separated by spaces; default: all of the app's."),
      resource,
    })
    .meta({ id: "OAuthDeviceRequest" }),
  response: {
    description: "The codes.",
    json: z
      .object({
        device_code: z.string(),
        user_code: z.string(),
        verification_uri: z.string(),
        verification_uri_complete: z.string(),
        expires_in: z.int(),
        interval: z.int(),
      })
      .meta({ id: "OAuthDeviceAuthorization" }),
  },
};

const tokenBody = z
  .object({ ...credentials, token: z.string(), token_type_hint: z.string().optional().describe("Not needed.") })
  .meta({ id: "OAuthTokenReference" });

export const revocationDoc: RouteDoc = {
  ...form,
  operationId: "oauthRevoke",
  summary: "Revoke a token",
  description: `RFC 7009. Whichever of the app's tokens it is, all of that sign-in end at once. ${authentication}`,
  requestBody: tokenBody,
  response: { description: "The token is revoked, or belonged to no sign-in of the app.", json: z.object({}) },
};

export const introspectionDoc: RouteDoc = {
  ...form,
  operationId: "oauthIntrospect",
  summary: "Ask whether a token is good",
  description: `RFC 7662, for the app's own tokens, and for confidential apps alone. ${authentication}`,
  requestBody: tokenBody,
  response: {
    description: "What the token is good for; `active` alone where it is not.",
    json: z
      .object({
        active: z.boolean(),
        scope: z.string().optional(),
        client_id: z.string().optional(),
        sub: z.string().optional().describe("The person who allowed it."),
        iss: z.string().optional(),
        exp: z.int().optional(),
        iat: z.int().optional(),
        token_type: z.string().optional(),
        aud: z.union([z.string(), z.array(z.string())]).optional(),
        jti: z.string().optional(),
      })
      .meta({ id: "OAuthIntrospection" }),
  },
};

const { 401: _, ...registrationRefusals } = refusals;

export const registrationDoc: RouteDoc = {
  tag: "OAuth",
  otherResponses: registrationRefusals,
  operationId: "oauthRegister",
  summary: "Register a client",
  description:
    "RFC 7591, for clients of tools that know no account here. Such a client is public and uses PKCE, whatever it asks for, can be granted `tools:use` alone, and is shown to people as one that nobody has verified. It is forgotten after a day in which nobody allowed it, and once it was not used for 90 days. Members that are not named here are of no account. The operator may switch it off (`oauth.registration`).",
  requestBody: z
    .object({
      redirect_uris: z
        .array(z.string())
        .describe("1 to 20: https, http on 127.0.0.1, [::1] or localhost (any port), or a scheme of its own."),
      client_name: z.string().optional().describe("Shown to people who are asked to allow it; at most 100 characters."),
      client_uri: z.string().optional().describe("An https address, shown beside the name."),
      grant_types: z.array(z.string()).optional().describe("`authorization_code` among them."),
      response_types: z.array(z.string()).optional().describe("`code` among them."),
    })
    .meta({ id: "OAuthRegistrationRequest" }),
  response: {
    status: 201,
    description: "The client, with its id.",
    json: z
      .object({
        client_id: z.string(),
        client_id_issued_at: z.int(),
        client_name: z.string().optional(),
        client_uri: z.string().optional(),
        redirect_uris: z.array(z.string()),
        grant_types: z.array(z.string()),
        response_types: z.array(z.string()),
        token_endpoint_auth_method: z.literal("none"),
        scope: z.string(),
      })
      .meta({ id: "OAuthRegistration" }),
  },
  errors: ["not_found"],
};

export const serverMetadataDoc: RouteDoc = {
  tag: "OAuth",
  operationId: "authorizationServerMetadata",
  summary: "Metadata of the authorization server",
  description: "RFC 8414.",
  response: {
    description: "Its endpoints, and what they support.",
    json: z
      .looseObject({ issuer: z.string(), authorization_endpoint: z.string(), token_endpoint: z.string() })
      .meta({ id: "AuthorizationServerMetadata" }),
  },
};

const resourceMetadata = {
  tag: "OAuth",
  response: {
    description: "Which authorization server issues tokens for it.",
    json: z
      .looseObject({ resource: z.string(), authorization_servers: z.array(z.string()) })
      .meta({ id: "ProtectedResourceMetadata" }),
  },
} as const;

export const resourceMetadataDoc: RouteDoc = {
  ...resourceMetadata,
  operationId: "protectedResourceMetadata",
  summary: "Metadata of the API as a protected resource",
  description: "RFC 9728. Answers of status 401 name this address.",
};

export const toolsMetadataDoc: RouteDoc = {
  ...resourceMetadata,
  operationId: "toolsResourceMetadata",
  summary: "Metadata of all tools as a protected resource",
  description: "RFC 9728. Answers of `/mcp` with status 401 name this address.",
};

export const mcpServerMetadataDoc: RouteDoc = {
  ...resourceMetadata,
  operationId: "toolServerResourceMetadata",
  summary: "Metadata of the tools of one server as a protected resource",
  description:
    "RFC 9728. Answers of `/mcp/{server}` with status 401 name this address. It is the same whether or not there is such a server.",
  parameters: [{ name: "server", in: "path", description: "The name of the server." }],
  errors: ["not_found"],
};
