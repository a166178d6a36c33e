// Exchanges an API key for a short-lived access token, and publishes the keys that verify such tokens.
import { z } from "zod";
import type { Clock } from "../../base/clock.ts";
import { keyOf } from "../../domain/principal.ts";
import { type AccessTokens, defaultTokenSeconds, minTokenSeconds } from "../../policy/credentials/access-tokens.ts";
import type { Authenticator } from "../../policy/credentials/authenticate.ts";
import { maxTokenSeconds, type SigningKeys } from "../../policy/credentials/signing-keys.ts";
import type { Throttle } from "../../policy/throttle.ts";
import type { BodyLimits } from "../../requests/decode/parse-body.ts";
import { readStrictBody } from "../content/strict-body.ts";
import type { Exchange, PublicRoute } from "../exchange/route.ts";
import { originOf } from "./changes.ts";

export interface TokenRouteDeps {
  authenticator: Pick<Authenticator, "authenticate">;
  tokens: Pick<AccessTokens, "issue">;
  signingKeys: Pick<SigningKeys, "jwks">;
  throttle: Pick<Throttle, "require">;
  clock: Clock;
}

/** Body limits for callers that are not authenticated yet. */
const bodyLimits: BodyLimits = { bodyBytes: 16_384, depth: 4 };

const tokenRequest = z
  .object({
    // The format of the key is not validated here, because every wrong key must get the same answer.
    api_key: z.string().describe("The API key to exchange."),
    expires_in: z
      .int()
      .min(minTokenSeconds)
      .max(maxTokenSeconds)
      .nullish()
      .describe(`Lifetime of the token in seconds. Default ${defaultTokenSeconds}. Never longer than the key's.`),
    scope: z
      .string()
      .nullish()
      .describe(
        "Scopes of the token, separated by spaces. Each must be a scope of the key. Default: all scopes of the key except `admin:manage`, which must be named.",
      ),
  })
  .meta({ id: "TokenRequest" });

const tokenAnswer = z
  .object({
    access_token: z.string().describe("A JWT (RFC 9068) to send as `Authorization: Bearer`."),
    token_type: z.literal("Bearer"),
    expires_in: z.int().describe("Lifetime of the token in seconds. Shorter than requested if the key ends sooner."),
    scope: z.string().describe("Scopes of the token, separated by spaces."),
  })
  .meta({ id: "AccessToken" });

const jwks = z
  .object({
    keys: z.array(
      z.object({
        kty: z.string(),
        crv: z.string(),
        x: z.string(),
        y: z.string(),
        kid: z.string(),
        use: z.literal("sig"),
        alg: z.literal("ES256"),
      }),
    ),
  })
  .meta({ id: "JsonWebKeySet" });

export function tokenRoutes(deps: TokenRouteDeps): PublicRoute[] {
  return [
    {
      method: "POST",
      path: "/v1/auth/token",
      access: "public",
      throttle: "client",
      doc: {
        operationId: "createAccessToken",
        summary: "Exchange an API key for an access token",
        description:
          "The key in the body is checked like a key in a header. Credentials in headers are ignored. The token has the key's environment and allowed addresses. If the key is revoked, expires or loses a scope, the same happens to the token.",
        tag: "Tokens",
        requestBody: tokenRequest,
        example: { api_key: "sk_dev_hr_…", expires_in: 3600, scope: "chat:write models:read" },
        response: { description: "The token. It is shown once and not stored.", json: tokenAnswer },
        errors: [
          "invalid_request",
          "invalid_api_key",
          "insufficient_scope",
          "rate_limit_exceeded",
          "request_too_large",
          "unsupported_media_type",
          "service_unavailable",
        ],
      },
      handle: (exchange) => exchangeKey(exchange, deps),
    },
    {
      method: "GET",
      path: "/.well-known/jwks.json",
      access: "public",
      throttle: "file",
      doc: {
        operationId: "jwks",
        summary: "Retrieve the public keys of the access tokens",
        description:
          "A JSON Web Key Set (RFC 7517). A new key is published ten minutes before it signs. An old key stays published until the last token that it signed has expired.",
        tag: "Tokens",
        response: { description: "The keys.", json: jwks },
      },
      handle: () => Response.json(deps.signingKeys.jwks(), { headers: { "cache-control": "public, max-age=300" } }),
    },
  ];
}

async function exchangeKey(exchange: Exchange, deps: TokenRouteDeps): Promise<Response> {
  const { req, clientAddress, requestId } = exchange;
  exchange.answerHeaders["cache-control"] = "no-store";
  const { api_key, expires_in, scope } = await readStrictBody(tokenRequest, req, bodyLimits);
  const principal = await deps.authenticator.authenticate({
    authorization: null,
    // An empty key is replaced by a wrong key, because a missing key would get a different error.
    apiKey: api_key === "" ? " " : api_key,
    clientAddress,
    requestId,
    whyNotLocal: () => exchange.whyNotLocal(),
  });
  exchange.line["key"] = keyOf(principal).id;
  await deps.throttle.require("token", principal);
  const token = await deps.tokens.issue({
    principal,
    expiresIn: expires_in ?? defaultTokenSeconds,
    scope: scope ?? undefined,
    origin: originOf(exchange, deps),
  });
  const answer: z.infer<typeof tokenAnswer> = {
    access_token: token.accessToken,
    token_type: "Bearer",
    expires_in: token.expiresIn,
    scope: token.scope,
  };
  return Response.json(answer);
}
