// Checks an authorization request, in this order: the client, its redirect URI, and then the other parameters.
import type { Scope } from "../../domain/scope.ts";
import { defaultResources } from "../../policy/credentials/resources.ts";
import { namedResources } from "../resources.ts";
import type { ClientRequest, Fault, PageFault } from "./check.ts";
import { askedScopes, checks } from "./checks.ts";
import { type ClientSources, knownClient } from "./known-client.ts";
import type { Parameters } from "./parameters.ts";
import { registeredRedirectUri } from "./redirect-uri.ts";

/**
 * Finds the client and its redirect URI. Until both are known, nothing is sent to the client: an error is shown on our
 * own page (RFC 6749, 4.1.2.1).
 */
export async function clientRequest(
  parameters: Parameters,
  sources: ClientSources,
  issuer: string,
): Promise<ClientRequest | PageFault> {
  const app = await knownClient(parameters, sources);
  if ("reason" in app) return app;
  const redirectUri = registeredRedirectUri(parameters, app);
  return typeof redirectUri === "string" ? { parameters, app, redirectUri, issuer } : redirectUri;
}

/** A checked request, which may be shown to the person for consent. */
export interface ValidRequest extends ClientRequest {
  scopes: Scope[];
  /** Paths of the resources that the tokens will be valid for. */
  resources: readonly string[];
}

/**
 * Checks the request and returns the first error, which is sent to the app. Call after the person has signed in.
 * Otherwise, anybody could make a link to this server that redirects people elsewhere (RFC 9700, 4.11).
 */
export function validRequest(request: ClientRequest): ValidRequest | Fault {
  for (const check of checks) {
    const fault = check(request);
    if (fault) return fault;
  }
  const scopes = askedScopes(request);
  if ("fault" in scopes) return { error: "invalid_scope", description: scopes.fault };
  const named = namedResources(request.parameters.all("resource"), request.issuer);
  if ("fault" in named) return { error: "invalid_target", description: named.fault };
  return { ...request, scopes, resources: named.length > 0 ? named : defaultResources(scopes) };
}
