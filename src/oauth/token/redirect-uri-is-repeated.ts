// The redirect URI of the authorization request is sent again, byte for byte (RFC 6749, 4.1.3).
import type { AuthorizationCode } from "../../domain/oauth.ts";
import { invalidGrant } from "../oauth-error.ts";
import type { ClientRequest } from "./stage.ts";

/** Where that request named none there is one registered: it may be left out here as well. */
export function redirectUriIsRepeated(
  { redirectUri }: AuthorizationCode,
  { parameters, client }: ClientRequest,
): undefined {
  const sent = parameters.get("redirect_uri");
  if (redirectUri === null && (sent === undefined || client.redirectUris.includes(sent))) return;
  if (redirectUri === null || sent !== redirectUri) throw invalidGrant("redirect_uri");
}
