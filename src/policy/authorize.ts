// What an authenticated principal may do: scopes, and models of its environment.

import { GatewayError } from "../base/errors.ts";
import { shown } from "../base/text/shown.ts";
import type { Model } from "../domain/models/model.ts";
import type { Principal } from "../domain/principal.ts";
import type { Scope } from "../domain/scope.ts";

export function requireScope(principal: Principal, scope: Scope): void {
  if (!principal.scopes.has(scope)) {
    throw new GatewayError("insufficient_scope", `API key lacks required scope: ${scope}`);
  }
}

export function mayUseModel(principal: Principal, model: Model): boolean {
  return model.environments.includes(principal.environment);
}

/** The model, or `model_not_found`: the same answer for one that does not exist and one this key may not use. */
export function requireModel(principal: Principal, model: Model | undefined, id: string): Model {
  if (model && mayUseModel(principal, model)) return model;
  throw new GatewayError(
    "model_not_found",
    `The model \`${shown(id)}\` does not exist or this key may not use it. GET /v1/models lists the models of this key.`,
    { param: "model" },
  );
}
