// Metadata for clients: of the authorization server (RFC 8414), and of the API that it protects (RFC 9728).
import { appScopes } from "../domain/people/app.ts";
import type { Scope } from "../domain/scope.ts";
import { grantTypes } from "./token/flow.ts";

const clientAuthentication = ["client_secret_basic", "client_secret_post"];

/**
 * Returns the authorization server's metadata. `issuer` is the public URL without a trailing slash. The other argument
 * states which clients are allowed without registration.
 */
export function authorizationServerMetadata(
  issuer: string,
  { mayRegister, hasDocuments }: { mayRegister: boolean; hasDocuments: boolean },
) {
  return {
    issuer,
    authorization_endpoint: `${issuer}/oauth/authorize`,
    token_endpoint: `${issuer}/oauth/token`,
    revocation_endpoint: `${issuer}/oauth/revoke`,
    introspection_endpoint: `${issuer}/oauth/introspect`,
    device_authorization_endpoint: `${issuer}/oauth/device_authorization`,
    ...(mayRegister ? { registration_endpoint: `${issuer}/oauth/register` } : {}),
    client_id_metadata_document_supported: hasDocuments,
    jwks_uri: `${issuer}/.well-known/jwks.json`,
    scopes_supported: [...appScopes],
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: [...grantTypes],
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: [...clientAuthentication, "none"],
    revocation_endpoint_auth_methods_supported: [...clientAuthentication, "none"],
    introspection_endpoint_auth_methods_supported: clientAuthentication,
    authorization_response_iss_parameter_supported: true,
    service_documentation: `${issuer}/docs`,
  };
}

/**
 * Returns the metadata of a protected resource. `resource` is the audience of access tokens: the base URL of the API,
 * or the URL of an MCP endpoint.
 */
export function protectedResourceMetadata(resource: string, scopes: readonly Scope[], issuer: string) {
  return {
    resource,
    resource_name: "Headrace",
    authorization_servers: [issuer],
    scopes_supported: [...scopes],
    bearer_methods_supported: ["header"],
    resource_documentation: `${issuer}/docs`,
  };
}
