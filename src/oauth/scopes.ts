// Reads the scopes that an app asks for (RFC 6749, 3.3), within those that it was registered with.
import type { App } from "../domain/people/app.ts";
import { type Scope, scopes } from "../domain/scope.ts";

/** A refresh token comes with every access token: clients of tools ask for one by this name (OpenID Connect Core, 11). */
const alwaysGiven = "offline_access";
/** What may be told back: anything else could be made to say something in an error's text. */
const nameable = /^[\w:./-]{1,64}$/;

/**
 * In the order of the specification, each once; left out or empty (RFC 6749, 3.1) means all of the app's. `fault` is for
 * `error_description` of `invalid_scope`: ASCII without quotes and backslashes.
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
