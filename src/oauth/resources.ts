// Reads the requested resources of tokens (RFC 8707, 2), and narrows them within the grant.
import { coversResource, resourceOf } from "../policy/credentials/resources.ts";

const most = 10;

/** Returns the paths of the requested resources, each once. `fault` is for `error_description` of `invalid_target`. */
export function namedResources(uris: readonly string[], issuer: string): string[] | { fault: string } {
  if (uris.length > most) return { fault: `resource: at most ${most} of them.` };
  const paths = uris.map((uri) => resourceOf(uri, issuer));
  const known = paths.filter((path) => path !== undefined);
  if (known.length === paths.length) return [...new Set(known)];
  return { fault: `resource: must be ${issuer}/v1, ${issuer}/mcp, or ${issuer}/mcp/ and the name of a server.` };
}

/** Returns the resources of an access token: all granted ones if the request names none. */
export function narrowedResources(
  uris: readonly string[],
  granted: readonly string[],
  issuer: string,
): readonly string[] | { fault: string } {
  const named = namedResources(uris, issuer);
  if ("fault" in named) return named;
  if (named.length === 0) return granted;
  if (named.every((one) => coversResource(granted, one))) return named;
  return { fault: "resource: is none of those that were allowed; send the one of the authorization request." };
}
