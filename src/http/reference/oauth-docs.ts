// Descriptions of the OAuth endpoints for the OpenAPI document.
import { z } from "zod";
import { grantTypes } from "../../oauth/token/flow.ts";
import type { RouteDoc } from "../exchange/route.ts";

const oauthError = z
  .object({ error: z.string().describe("An error code of RFC 6749 or RFC 8628."), error_description: z.string() })
  .meta({ id: "OAuthError" });

const credentials = {
  client_id: z.string().optional().describe("The id of the app, unless the `Authorization` header has it."),
  client_secret: z.string().optional().describe("The secret of a confidential app that does not use HTTP Basic."),
};

const resource = z
  .string()
  .optional()
  .describe(
    "RFC 8707: the resource for which the access token is valid: the base URL of the API, or the URL of `/mcp` or `/mcp/{server}`. May be repeated. At the token endpoint, `resource` narrows what the person allowed.",
  );

const authentication =
  "A confidential app authenticates by HTTP Basic with its form-encoded `client_id` and secret, or by `client_id` and `client_secret` in the body. A public app sends only its `client_id`.";

/** The errors of the OAuth endpoints. `internal_error` is not listed, because all routes have it. */
const refusals: NonNullable<RouteDoc["otherResponses"]> = {
  400: { name: "OAuthRequestRefused", description: "The request is refused.", json: oauthError },
  401: {
    name: "OAuthInvalidClient",
    description: "`invalid_client`: the authentication of the app failed.",
    json: oauthError,
  },
  413: { name: "OAuthRequestTooLarge", description: "The body is too large.", json: oauthError },
  429: {
    name: "OAuthTooManyRequests",
    description: "`temporarily_unavailable`: too many requests; `Retry-After` says when to retry.",
    json: oauthError,
  },
  503: {
    name: "OAuthUnavailable",
    description: "`temporarily_unavailable`: a store cannot be reached. Retry later.",
    json: oauthError,
  },
};

const form = { tag: "OAuth", requestType: "application/x-www-form-urlencoded", otherResponses: refusals } as const;

export const tokenDoc: RouteDoc = {
  ...form,
  operationId: "oauthToken",
  summary: "Exchange a code or a refresh token for tokens",
  description: `RFC 6749, with RFC 7636 (PKCE) and RFC 8628 (devices). ${authentication} Each use of a refresh token returns a new one and replaces the old. The same request within ten seconds gets the same answer; any other use of an old refresh token revokes the app's authorization.`,
  requestBody: z
    .object({
      ...credentials,
      grant_type: z.enum(grantTypes),
      code: z.string().optional().describe("The authorization code, for `authorization_code`."),
      redirect_uri: z
        .string()
        .optional()
        .describe("The `redirect_uri` of the authorization request. Required if that request had one."),
      code_verifier: z
        .string()
        .optional()
        .describe("The PKCE verifier that belongs to the `code_challenge` of the authorization request."),
      refresh_token: z.string().optional().describe("The refresh token, for `refresh_token`."),
      scope: z.string().optional().describe("For `refresh_token`: a subset of the scopes for this access token."),
      device_code: z
        .string()
        .optional()
        .describe("The device code, for `urn:ietf:params:oauth:grant-type:device_code`."),
      resource,
    })
    .meta({ id: "OAuthTokenRequest" }),
  response: {
    description: "The tokens. They are shown once.",
    json: z
      .object({
        access_token: z.string().describe("A JWT (RFC 9068). Send it as `Authorization: Bearer`."),
        token_type: z.literal("Bearer"),
        expires_in: z.int().describe("Lifetime of the access token in seconds."),
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
  description: `RFC 8628. Show the user code and the verification URI, then poll the token endpoint every \`interval\` seconds. ${authentication}`,
  requestBody: z
    .object({
      ...credentials,
      scope: z.string().optional().describe("Scopes, separated by spaces. Default: all scopes of the app."),
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
  .object({ ...credentials, token: z.string(), token_type_hint: z.string().optional().describe("Ignored.") })
  .meta({ id: "OAuthTokenReference" });

export const revocationDoc: RouteDoc = {
  ...form,
  operationId: "oauthRevoke",
  summary: "Revoke a token",
  description: `RFC 7009. Revokes all tokens of the sign-in that the token belongs to. ${authentication}`,
  requestBody: tokenBody,
  response: { description: "The token is revoked, or does not belong to the app.", json: z.object({}) },
};

export const introspectionDoc: RouteDoc = {
  ...form,
  operationId: "oauthIntrospect",
  summary: "Introspect a token",
  description: `RFC 7662. Only a confidential app may introspect tokens, and only its own. ${authentication}`,
  requestBody: tokenBody,
  response: {
    description: "What the token allows. Only `active: false` if the token is not valid.",
    json: z
      .object({
        active: z.boolean(),
        scope: z.string().optional(),
        client_id: z.string().optional(),
        sub: z.string().optional().describe("Id of the person who authorized the app."),
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
    "RFC 7591, for MCP clients without an account. Regardless of the request, such a client is public, uses PKCE, and can be granted only `tools:use`. People see it as unverified. It is deleted if nobody authorizes it within a day, or after 90 days without use. Other members are ignored. The operator can turn registration off (`oauth.registration`).",
  requestBody: z
    .object({
      redirect_uris: z
        .array(z.string())
        .describe(
          "1 to 20 URIs: https, http on 127.0.0.1, [::1] or localhost (any port), or a private-use scheme of the app.",
        ),
      client_name: z
        .string()
        .optional()
        .describe("Shown to people who are asked to authorize the client. At most 100 characters."),
      client_uri: z.string().optional().describe("An https URL, shown beside the name."),
      grant_types: z.array(z.string()).optional().describe("Must contain `authorization_code`."),
      response_types: z.array(z.string()).optional().describe("Must contain `code`."),
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
    description: "Endpoints of the authorization server and the features that they support.",
    json: z
      .looseObject({ issuer: z.string(), authorization_endpoint: z.string(), token_endpoint: z.string() })
      .meta({ id: "AuthorizationServerMetadata" }),
  },
};

const resourceMetadata = {
  tag: "OAuth",
  response: {
    description: "The authorization server that issues tokens for the resource.",
    json: z
      .looseObject({ resource: z.string(), authorization_servers: z.array(z.string()) })
      .meta({ id: "ProtectedResourceMetadata" }),
  },
} as const;

export const resourceMetadataDoc: RouteDoc = {
  ...resourceMetadata,
  operationId: "protectedResourceMetadata",
  summary: "Metadata of the API as a protected resource",
  description: "RFC 9728. Answers with status 401 name this URL.",
};

export const toolsMetadataDoc: RouteDoc = {
  ...resourceMetadata,
  operationId: "toolsResourceMetadata",
  summary: "Metadata of `/mcp` as a protected resource",
  description: "RFC 9728. Answers of `/mcp` with status 401 name this URL.",
};

export const mcpServerMetadataDoc: RouteDoc = {
  ...resourceMetadata,
  operationId: "toolServerResourceMetadata",
  summary: "Metadata of one MCP server as a protected resource",
  description:
    "RFC 9728. Answers of `/mcp/{server}` with status 401 name this URL. The answer does not reveal whether the server exists.",
  parameters: [{ name: "server", in: "path", description: "The name of the server." }],
  errors: ["not_found"],
};
