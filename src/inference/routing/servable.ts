// Checks whether a model can serve a request, before an engine is asked.
import { fieldError } from "../../base/errors.ts";
import type { Deployment, Model } from "../../domain/models/model.ts";
import type { DecodedRequest } from "../../requests/decoded-request.ts";
import { requireContext } from "../../requests/facts.ts";

/** Throws `invalid_request` if the model cannot serve the request. */
export function requireServable(model: Model, request: DecodedRequest): void {
  requireCapability(model, request);
  requireContext(model, request);
  if (request.form) requireFormsTaken(model);
}

export function isServable(model: Model, request: DecodedRequest): boolean {
  try {
    requireServable(model, request);
    return true;
  } catch {
    return false;
  }
}

/**
 * Refuses the request if the model declares that it lacks the capability. If the capability is not declared, the engine
 * decides.
 */
function requireCapability(model: Model, { dialect }: DecodedRequest): void {
  if (model.capabilities?.[dialect.capability] === false) {
    throw fieldError(
      "model",
      `\`${model.id}\` does not support ${dialect.endpoint}. GET /v1/models shows the capabilities of each model.`,
    );
  }
}

/**
 * Throws `invalid_request` if no deployment accepts multipart forms. If the model has no deployments, does nothing,
 * because a later error is more useful.
 */
function requireFormsTaken({ id, deployments }: Model): void {
  if (deployments.length === 0 || deployments.some(takesForms)) return;
  throw fieldError(
    "model",
    `\`${id}\` runs on a node, and forms with files are not sent to nodes. Ask for a model of an upstream.`,
  );
}

export function takesForms({ engine }: Deployment): boolean {
  return engine.takesForms !== false;
}
