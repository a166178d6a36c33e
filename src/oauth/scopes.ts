// Reads the scopes that an app requests (RFC 6749, 3.3), within those of its registration.
import type { App } from "../domain/people/app.ts";
import { type Scope, scopes } from "../domain/scope.ts";

/**
 * The scope by which MCP clients request a refresh token (OpenID Connect Core, 11). Every client gets a refresh token
 * anyway.
 */
const alwaysGiven = "offline_access";
/** Scope names that an error message may quote. Any other text could carry a message to the reader. */
const nameable = /^[\w:./-]{1,64}$/;

/**
 * Returns the requested scopes in the order of the specification, each once. A missing or empty `scope` (RFC 6749, 3.1)
 * means all scopes of the app. `fault` is for `error_description` of `invalid_scope`: ASCII without quotes and
 * backslashes.
 */
export function requestedScopes(text: string | undefined, app: Pick<App, "scopes">): Scope[] | { fault: string } {
  const allowed = scopes.filter((scope) => app.scopes.includes(scope));
  if (text === undefined || text === "") return allowed;
  const wanted = new Set(text.split(" "));
  if (wanted.delete(alwaysGiven) && wanted.size === 0) return allowed;
  for (const name of wanted) {
    if (allowed.some((scope) => scope === name)) continue;
    const which = nameable.test(name) ? `${name} is` : "one name is";
    return { fault: `scope: ${which} not allowed for this app; allowed are ${allowed.join(", ")}, one space apart.` };
  }
  return allowed.filter((scope) => wanted.has(scope));
}
