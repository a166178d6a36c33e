// Validates the values of a model in an operator's request, and converts them to the stored form.

import { type GatewayError, invalidRequest } from "../../base/errors.ts";
import { inUsualOrder } from "../../domain/api-key.ts";
import type { Capabilities } from "../../domain/models/capabilities.ts";
import {
  aliasFaults,
  aliasPattern,
  aliasText,
  deploymentFaults,
  type EntryFault,
  fallbackFaults,
  type ModelSettings,
} from "../../domain/models/model-entry.ts";
import type { ModelPolicies } from "../../domain/models/policies/model-policies.ts";
import { policyFaults } from "../../domain/models/policies/policy-faults.ts";
import { policiesFromWire, policiesToWire } from "../../domain/models/policies/policy-text.ts";
import { priceFromWire, priceToWire } from "../../domain/models/price-text.ts";
import { listedPriceFault } from "../../prices/price-list.ts";
import type { CreateModelRequest, UpdateModelRequest } from "../../wire/models.ts";
import type { PoliciesRequest } from "../../wire/policies/model-policies.ts";

/** The names that a model's settings may refer to. */
export interface ModelSurroundings {
  /** Names of all upstreams and nodes, and of the built-in engine. */
  upstreams: readonly string[];
  /** Names of the guardrails in headrace.yaml. */
  guardrails: readonly string[];
  capabilitiesOf(id: string): Capabilities | undefined;
  /** Returns the id of the declared model that has the alias, or undefined. */
  aliasOwner(alias: string): string | undefined;
}

export const openSettings: ModelSettings = {
  ...{ ownedBy: null, capabilities: null, context: null, environments: null, price: null, priceOf: null },
  policies: null,
  ...{ deployments: [], fallbacks: [], aliases: [] },
};

/**
 * Returns the changed settings. Members that the request leaves out stay. The value null removes a member. Throws
 * `invalid_request`.
 */
export function changedModelSettings(
  id: string,
  current: ModelSettings,
  request: UpdateModelRequest,
  surroundings: ModelSurroundings,
): ModelSettings {
  const { deployments } = request;
  // Unchanged deployments are not checked, so that a model whose upstream was deleted can still be edited.
  if (deployments) throwFirst(deploymentFaults(id, deployments, surroundings.upstreams));
  const settings: ModelSettings = {
    ownedBy: chosen(request.owned_by, current.ownedBy),
    capabilities: chosen(request.capabilities, current.capabilities),
    context: chosen(request.context_length, current.context),
    environments: request.environments
      ? inUsualOrder(request.environments)
      : chosen(request.environments, current.environments),
    price: request.price ? priceFromWire(request.price) : chosen(request.price, current.price),
    priceOf: chosen(request.price_of, current.priceOf),
    deployments:
      deployments === undefined
        ? current.deployments
        : (deployments ?? []).map(({ upstream, model, weight }) => ({
            ...{ upstream, model: model ?? id, weight: weight ?? 1 },
          })),
    fallbacks: request.fallbacks === undefined ? current.fallbacks : (request.fallbacks ?? []),
    aliases: request.aliases === undefined ? current.aliases : (request.aliases ?? []),
    policies: changedPolicies(current.policies, request.policies),
  };
  request.fallbacks?.forEach((fallback, index) => {
    if (!isPrintable(fallback)) throw unprintable(`fallbacks[${index}]`);
  });
  if (request.fallbacks || request.capabilities) {
    const { fallbacks, capabilities } = settings;
    throwFirst(fallbackFaults({ id, fallbacks, capabilities: capabilities ?? undefined }, surroundings.capabilitiesOf));
  }
  if (request.price_of) {
    const fault = listedPriceFault(request.price_of);
    throwFirst(fault ? [{ path: ["price_of"], ...fault }] : []);
  }
  if (request.aliases) requireAliases(id, request.aliases, surroundings);
  requirePolicies(id, settings, request, surroundings);
  return settings;
}

/** Returns the changed policies. A policy in the request replaces the earlier one as a whole. */
function changedPolicies(
  current: ModelPolicies | null,
  said: PoliciesRequest | null | undefined,
): ModelPolicies | null {
  if (said === undefined) return current;
  if (said === null) return null;
  const given = Object.entries(said).filter(([, policy]) => policy !== undefined);
  return policiesFromWire({ ...(current && policiesToWire(current)), ...Object.fromEntries(given) }) ?? null;
}

/**
 * Checks the changed policies. A policy that did not change may name deleted guardrails or upstreams. A policy for a
 * deployment that was removed is refused.
 */
function requirePolicies(
  id: string,
  { capabilities, deployments, policies }: ModelSettings,
  request: UpdateModelRequest,
  { upstreams, guardrails, capabilitiesOf }: ModelSurroundings,
): void {
  const overflow = request.deployments ? policies?.overflow : undefined;
  const said = { ...(overflow ? { overflow } : {}), ...policiesFromWire(request.policies ?? {}) };
  const around = { upstreams, guardrails, capabilitiesOf, priceFault: listedPriceFault };
  throwFirst(policyFaults({ id, capabilities, deployments }, said, around));
}

function requireAliases(id: string, aliases: readonly string[], { aliasOwner }: ModelSurroundings): void {
  for (const [index, alias] of aliases.entries()) {
    if (aliasPattern.test(alias)) continue;
    throw invalidRequest(`aliases[${index}]: must be ${aliasText}. Give a name such as gpt-5 or claude-*.`);
  }
  const ownerOf = (alias: string) => {
    const owner = aliasOwner(alias);
    return owner === id ? undefined : owner;
  };
  throwFirst(aliasFaults({ id, aliases }, ownerOf));
}

/** Returns the id of a new model. Throws `invalid_request` if the id is invalid. */
export function newModelId({ id }: Pick<CreateModelRequest, "id">): string {
  if (!isPrintable(id)) throw unprintable("id");
  // Clients resolve `.` and `..` in a path before they send it, so a model with such an id could never be requested.
  if (id.split("/").every((part) => part !== "." && part !== "..")) return id;
  throw invalidRequest(
    "id: must not be, or have between slashes, . or .., as no path can name them. Give an id such as llama-3.1-8b.",
  );
}

/** Returns the settings in the form of the API. */
export function modelSettingsToWire(settings: ModelSettings) {
  return {
    owned_by: settings.ownedBy,
    capabilities: settings.capabilities,
    context_length: settings.context,
    environments: settings.environments && [...settings.environments],
    price: settings.price && priceToWire(settings.price),
    price_of: settings.priceOf,
    deployments: settings.deployments.map(({ upstream, model, weight }) => ({ upstream, model, weight })),
    fallbacks: [...settings.fallbacks],
    aliases: [...settings.aliases],
    policies: settings.policies && policiesToWire(settings.policies),
  };
}

function chosen<Value>(given: Value | null | undefined, before: Value | null): Value | null {
  return given === undefined ? before : given;
}

function throwFirst([fault]: readonly EntryFault[]): void {
  if (!fault) return;
  const { path, message, fix } = fault;
  const pathText = path.map((step, index) =>
    typeof step === "number" ? `[${step}]` : `${index > 0 ? "." : ""}${step}`,
  );
  throw invalidRequest(`${pathText.join("")}: ${message}. ${fix}`);
}

function isPrintable(text: string): boolean {
  return /^[!-~]+$/.test(text);
}

function unprintable(path: string): GatewayError {
  return invalidRequest(
    `${path}: must be 1 to 256 printable ASCII characters without spaces. Give an id such as llama-3.1-8b.`,
  );
}
