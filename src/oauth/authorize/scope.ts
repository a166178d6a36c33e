// What is asked for is within what the app was registered with, and within what any app may be granted.
import { type App, appScopes } from "../../domain/people/app.ts";
import type { Scope } from "../../domain/scope.ts";
import { requestedScopes } from "../scopes.ts";
import type { Check } from "./check.ts";
import type { Parameters } from "./parameters.ts";

/** Never `keys:manage` nor `admin:manage`, whatever a record says. */
export function askedScopes(parameters: Parameters, app: Pick<App, "scopes">): Scope[] | { fault: string } {
  return requestedScopes(parameters.get("scope"), { scopes: appScopes.filter((scope) => app.scopes.includes(scope)) });
}

export const scope: Check = ({ parameters, app }) => {
  const asked = askedScopes(parameters, app);
  if ("fault" in asked) return { error: "invalid_scope", description: asked.fault };
  if (asked.length > 0) return undefined;
  return { error: "invalid_scope", description: "scope: this app has none that it could be granted." };
};
