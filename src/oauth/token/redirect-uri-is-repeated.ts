// The redirect URI of the authorization request is sent again, byte for byte (RFC 6749, 4.1.3).
import type { AuthorizationCode } from "../../domain/people/oauth.ts";
import { invalidGrant, OAuthError } from "../oauth-error.ts";
import type { ClientRequest } from "./stage.ts";

/** Where that request named none there is one registered: it may be left out here as well. */
export function redirectUriIsRepeated(
  { redirectUri }: AuthorizationCode,
  { parameters, client }: ClientRequest,
): undefined {
  const sent = parameters.get("redirect_uri");
  if (redirectUri === null && (sent === undefined || client.redirectUris.includes(sent))) return;
  if (sent === undefined) {
    // RFC 6749, 5.2: a required parameter is missing. Told to the very app that the code was issued to.
    throw new OAuthError("invalid_request", "redirect_uri: is required, as it was in the authorization request.");
  }
  if (sent !== redirectUri) throw invalidGrant("redirect_uri");
}
