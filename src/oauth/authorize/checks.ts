// The rules for an authorization request, one check per parameter, in order.
import { appScopes } from "../../domain/people/app.ts";
import type { Scope } from "../../domain/scope.ts";
import { apiResource } from "../../policy/credentials/resources.ts";
import { namedResources } from "../resources.ts";
import { requestedScopes } from "../scopes.ts";
import type { Check, ClientRequest, Fault } from "./check.ts";
import type { Parameters } from "./parameters.ts";

/**
 * Parameters that may be sent only once. Unknown parameters are ignored, and `resource` may be repeated (RFC 8707, 2).
 */
const known = [
  "response_type",
  "response_mode",
  "scope",
  "state",
  "code_challenge",
  "code_challenge_method",
  "prompt",
  "request",
  "request_uri",
];
const maxStateLength = 2_048;
/** The pattern of a SHA-256 digest in base64url. */
const digestPattern = /^[\w-]{43}$/;

const invalid = (description: string): Fault => ({ error: "invalid_request", description });

/** Refuses a repeated parameter (RFC 6749, 3.1): the app and this server might use different ones of its values. */
const repeatedParameters: Check = ({ parameters }) => {
  const name = known.find((one) => parameters.isRepeated(one));
  return name === undefined ? undefined : invalid(`${name}: send it once.`);
};

/** Refuses signed request objects (RFC 9101), which are not supported and must not be ignored. */
const requestObject: Check = ({ parameters }) => {
  for (const name of ["request", "request_uri"] as const) {
    if (parameters.get(name) === undefined) continue;
    return { error: `${name}_not_supported`, description: `${name}: send the parameters in the query instead.` };
  }
  return undefined;
};

/** Allows only the response type `code`, because tokens in a URL leak (RFC 9700, 2.1.2). */
const responseType: Check = ({ parameters }) => {
  const type = parameters.get("response_type");
  if (type === "code") return undefined;
  if (type === undefined) return invalid("response_type: must be code; it is missing.");
  return { error: "unsupported_response_type", description: "response_type: must be code." };
};

/** Allows only the response mode `query`. */
const responseMode: Check = ({ parameters }) => {
  const mode = parameters.get("response_mode");
  return mode === undefined || mode === "query" ? undefined : invalid("response_mode: must be query, or left out.");
};

/** Limits the length of `state`, which is returned unchanged and must fit into a URL. */
const stateLength: Check = ({ parameters }) => {
  if ((parameters.get("state")?.length ?? 0) <= maxStateLength) return undefined;
  return invalid(`state: at most ${maxStateLength} characters.`);
};

/** Requires PKCE (RFC 7636) of clients that cannot keep a secret, in the form that does not reveal the verifier. */
const codeChallenge: Check = ({ parameters, app }) => {
  const challenge = parameters.get("code_challenge");
  const method = parameters.get("code_challenge_method");
  if (challenge === undefined) {
    if (method !== undefined) return invalid("code_challenge: is missing, while its method was sent.");
    if (app.type === "confidential" && !app.requirePkce) return undefined;
    return invalid("code_challenge: this app has to send one; its method is S256.");
  }
  // A missing method means plain (RFC 7636, 4.3), which is refused.
  if (method !== "S256") return invalid("code_challenge_method: must be S256; plain is not served.");
  if (digestPattern.test(challenge)) return undefined;
  return invalid("code_challenge: must be the SHA-256 of the verifier in base64url, 43 characters without padding.");
};

/**
 * Returns the requested scopes. They must be among those that the app was registered with, and among those that any app
 * may get: never `keys:manage` or `admin:manage`, whatever a record says.
 */
export function askedScopes({ parameters, app, issuer }: ClientRequest): Scope[] | { fault: string } {
  const most = appScopes.filter((scope) => app.scopes.includes(scope));
  const resources = namedResources(parameters.all("resource"), issuer);
  // A request for MCP servers that names no scope gets only the scopes that tools need.
  const isForTools = "fault" in resources ? false : resources.length > 0 && !resources.includes(apiResource);
  const isNamed = parameters.get("scope") !== undefined;
  const usual = isForTools && !isNamed ? most.filter((scope) => scope === "tools:use") : most;
  return requestedScopes(parameters.get("scope"), { scopes: usual });
}

const scope: Check = (request) => {
  const asked = askedScopes(request);
  if ("fault" in asked) return { error: "invalid_scope", description: asked.fault };
  if (asked.length > 0) return undefined;
  return { error: "invalid_scope", description: "scope: this app has none that it could be granted." };
};

/** Requires that tokens are requested only for resources of this gateway (RFC 8707, 2). */
const resource: Check = ({ parameters, issuer }) => {
  const named = namedResources(parameters.all("resource"), issuer);
  return "fault" in named ? { error: "invalid_target", description: named.fault } : undefined;
};

/** Refuses `none` together with other values of `prompt` (OpenID Connect Core, 3.1.2.1). */
const prompt: Check = ({ parameters }) => {
  const values = parameters.get("prompt")?.split(" ") ?? [];
  if (!values.includes("none") || values.length === 1) return undefined;
  return invalid("prompt: none goes with no other value.");
};

/**
 * Returns when to ask the person for consent: `never` for the prompt `none`, `always` for any other prompt, `as_needed`
 * without a prompt.
 */
export function askingWanted(parameters: Parameters): "never" | "always" | "as_needed" {
  const prompt = parameters.get("prompt");
  if (prompt === undefined) return "as_needed";
  return prompt === "none" ? "never" : "always";
}

export const checks: readonly Check[] = [
  repeatedParameters,
  requestObject,
  responseType,
  responseMode,
  stateLength,
  codeChallenge,
  resource,
  scope,
  prompt,
];
