// What an authenticated principal may do: scopes, and models of its environment within the reach of its keys.

import { forbidden, GatewayError } from "../base/errors.ts";
import { shown } from "../base/text/shown.ts";
import type { Model } from "../domain/models/model.ts";
import { matchesModel } from "../domain/models/model-patterns.ts";
import type { Principal } from "../domain/principal.ts";
import type { Scope } from "../domain/scope.ts";

export function requireScope(principal: Principal, scope: Scope): void {
  if (!principal.scopes.has(scope)) {
    throw new GatewayError("insufficient_scope", `API key lacks required scope: ${scope}`);
  }
}

/**
 * The model as the principal may use it: for one whose requests never leave, with its local deployments alone. Undefined
 * where it may not use it. The model's own id decides, never the name by which it was asked for.
 */
export function usableModel(principal: Principal, model: Model): Model | undefined {
  return isNamed(principal, model) ? withinReach(principal, model) : undefined;
}

/** Likewise, of one that an operator chose in place of the model that the principal may use. */
export function withinReach(principal: Principal, model: Model): Model | undefined {
  return principal.reach?.neverLeaves ? localPartOf(model) : model;
}

/**
 * The model as the principal may use it. `model_not_found`: the same answer for one that does not exist and one this key
 * may not use; `permission_denied` where the key may, and all of its deployments are places that its requests may not go to.
 */
export function requireModel(principal: Principal, model: Model | undefined, id: string): Model {
  const usable = model && usableModel(principal, model);
  if (usable) return usable;
  if (model && isNamed(principal, model)) {
    throw forbidden(
      `The requests of this key never leave (never_leaves), and \`${shown(id)}\` runs nowhere that an operator marked as local. GET /v1/models lists the models of this key.`,
      { param: "model" },
    );
  }
  throw new GatewayError(
    "model_not_found",
    `The model \`${shown(id)}\` does not exist or this key may not use it. GET /v1/models lists the models of this key.`,
    { param: "model" },
  );
}

function isNamed({ environment, reach }: Principal, model: Model): boolean {
  if (!model.environments.includes(environment)) return false;
  return reach === undefined || reach.models.every((patterns) => matchesModel(patterns, model.id));
}

/** The catalog makes its models anew whenever anything of them changes. */
const localParts = new WeakMap<Model, Model | "none">();

function localPartOf(model: Model): Model | undefined {
  let part = localParts.get(model);
  if (part === undefined) {
    const deployments = model.deployments.filter(({ local }) => local);
    part = deployments.length === 0 ? "none" : { ...model, deployments };
    localParts.set(model, part);
  }
  return part === "none" ? undefined : part;
}
