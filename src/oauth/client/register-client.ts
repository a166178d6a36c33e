// Dynamic registration of clients (RFC 7591), for clients without an account here and without a document at their own
// address.
import { GatewayError } from "../../base/errors.ts";
import { type OutsideClientStore, outsideScopes } from "../../domain/people/outside-client.ts";
import { OAuthError } from "../oauth-error.ts";
import type { RequestOrigin } from "./authenticate-client.ts";
import { describedClient } from "./client-metadata.ts";
import type { ClientThrottle } from "./client-throttle.ts";

export interface RegistrationDeps {
  outsideClients: Pick<OutsideClientStore, "register">;
  clientThrottle: Pick<ClientThrottle, "requireRegistration">;
}

/** The client information response (RFC 7591, 3.2.1). */
export interface RegisteredClient {
  client_id: string;
  client_id_issued_at: number;
  client_name?: string;
  client_uri?: string;
  redirect_uris: readonly string[];
  grant_types: readonly string[];
  response_types: readonly string[];
  token_endpoint_auth_method: "none";
  scope: string;
}

/**
 * Registers a client, always as public, whatever it requests (RFC 7591, 2, lets the server replace requested values). A
 * secret that everybody gets on request would prove nothing, and PKCE is required. Throws `invalid_redirect_uri`,
 * `invalid_client_metadata`, `rate_limit_exceeded` or `service_unavailable`.
 */
export async function registerClient(
  metadata: Readonly<Record<string, unknown>>,
  { nowSeconds }: Pick<RequestOrigin, "nowSeconds">,
  { outsideClients }: RegistrationDeps,
): Promise<RegisteredClient> {
  const described = describedClient(metadata);
  if ("fault" in described) throw new OAuthError(described.fault, described.description);
  const { name, homepageUrl, redirectUris } = described;
  const id = `app_${Bun.randomUUIDv7()}`;
  const client = { ...described, id, documentUrl: null, createdAt: nowSeconds, allowedAt: null, suspendedBy: null };
  if (!(await outsideClients.register(client))) {
    throw new GatewayError("service_unavailable", "Too many clients have registered just now. Retry in 60 s.", {
      detail: "registrations_full",
      retryAfterSeconds: 60,
    });
  }
  return {
    client_id: id,
    client_id_issued_at: nowSeconds,
    ...(name === "" ? {} : { client_name: name }),
    ...(homepageUrl === null ? {} : { client_uri: homepageUrl }),
    redirect_uris: redirectUris,
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    scope: outsideScopes.join(" "),
  };
}
