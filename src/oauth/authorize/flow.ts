// The order in which an authorization request is judged.
import type { AppStore } from "../../domain/people/app.ts";
import type { Scope } from "../../domain/scope.ts";
import type { Check, ClientRequest, Fault, PageFault } from "./check.ts";
import { codeChallenge } from "./code-challenge.ts";
import { knownClient } from "./known-client.ts";
import type { Parameters } from "./parameters.ts";
import { prompt } from "./prompt.ts";
import { registeredRedirectUri } from "./redirect-uri.ts";
import { repeatedParameters } from "./repeated-parameters.ts";
import { requestObject } from "./request-object.ts";
import { responseMode } from "./response-mode.ts";
import { responseType } from "./response-type.ts";
import { askedScopes, scope } from "./scope.ts";
import { stateLength } from "./state-length.ts";

/**
 * First, whose request it is and where its answer goes. Until both are known nothing is sent anywhere: a fault is a page of
 * our own (RFC 6749, 4.1.2.1).
 */
export async function clientRequest(
  parameters: Parameters,
  apps: Pick<AppStore, "findApp">,
): Promise<ClientRequest | PageFault> {
  const app = await knownClient(parameters, apps);
  if ("reason" in app) return app;
  const redirectUri = registeredRedirectUri(parameters, app);
  return typeof redirectUri === "string" ? { parameters, app, redirectUri } : redirectUri;
}

/**
 * Then, once the person is signed in (RFC 9700, 4.11: nobody is led away from here by an address that anybody can make up),
 * these. The first fault is sent to the app.
 */
export const checks: readonly Check[] = [
  repeatedParameters,
  requestObject,
  responseType,
  responseMode,
  stateLength,
  codeChallenge,
  scope,
  prompt,
];

/** A request that may be put to the person. */
export interface ValidRequest extends ClientRequest {
  scopes: Scope[];
}

export function validRequest(request: ClientRequest): ValidRequest | Fault {
  for (const check of checks) {
    const fault = check(request);
    if (fault) return fault;
  }
  const scopes = askedScopes(request.parameters, request.app);
  return "fault" in scopes ? { error: "invalid_scope", description: scopes.fault } : { ...request, scopes };
}
