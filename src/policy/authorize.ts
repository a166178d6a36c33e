// Decides what an authenticated principal may do: its scopes, and the models of its environment that its keys allow.

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
 * Returns the model as the principal may use it: only with local deployments if the principal's requests must stay
 * local. Returns undefined if the principal may not use the model. The model's own id decides, not the name in the
 * request.
 */
export function usableModel(principal: Principal, model: Model): Model | undefined {
  return isNamed(principal, model) ? accessibleModel(principal, model) : undefined;
}

/**
 * Returns a model that an operator chose in place of a permitted one. If the principal's requests must stay local, the
 * model has only its local deployments; undefined if there are none.
 */
export function accessibleModel(principal: Principal, model: Model): Model | undefined {
  return principal.modelAccess?.neverLeaves ? localPartOf(model) : model;
}

/**
 * Returns the model as the principal may use it. Throws `model_not_found` both for a missing model and for one that
 * the key may not use. Throws `permission_denied` if the key may use the model, but its requests must not go to any
 * of the deployments.
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

function isNamed({ environment, modelAccess }: Principal, model: Model): boolean {
  if (!model.environments.includes(environment)) return false;
  return modelAccess === undefined || modelAccess.models.every((patterns) => matchesModel(patterns, model.id));
}

/**
 * For each model, a variant with only its local deployments. The catalog creates a new model object for each change.
 */
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
