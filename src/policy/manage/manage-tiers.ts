// Creates, changes and deletes the tiers of the database: makes the records and audit events, which a store writes in
// one step.

import { forbidden, GatewayError, invalidRequest } from "../../base/errors.ts";
import { shown } from "../../base/text/shown.ts";
import { defaultTierEnvironments, type Tier } from "../../domain/account.ts";
import { environments } from "../../domain/api-key.ts";
import type { AuditEvent } from "../../domain/audit.ts";
import { amounts, byName, byWire } from "../../domain/limits/amounts.ts";
import { defaultPriority } from "../../domain/models/policies/priority.ts";
import type { Principal } from "../../domain/principal.ts";
import { type TierRequest, type TierWire, tierNamePattern } from "../../wire/accounts.ts";
import { rulesOnWire } from "../../wire/quotas.ts";
import { aboutInstallation, auditEvent, changedMembers, type Origin } from "../records/audit.ts";
import { quotaRules } from "./key-values.ts";
import { requireOperator } from "./operator.ts";
import type { KnownTier, Tiers } from "./tiers.ts";

/** Adds or changes a tier. Returns undefined if the database already has the tier with these figures. */
export function putTier(
  principal: Principal,
  name: string,
  request: TierRequest,
  tiers: Pick<Tiers, "get">,
  origin: Origin,
): { tier: Tier; event: AuditEvent } | undefined {
  requireOperator(principal);
  requireTierName(name);
  const current = tiers.get(name);
  if (current?.source === "file") throw givenByFile(name);
  const tier = tierOf(name, request);
  const detail = changedMembers(current ? figuresToWire(current) : {}, figuresToWire(tier));
  if (current?.source === "database" && Object.keys(detail).length === 0) return undefined;
  return { tier, event: auditEvent("tier.changed", principal, origin, aboutInstallation(name, detail)) };
}

/** Returns the tier that the request describes. */
export function tierOf(name: string, request: TierRequest): Tier {
  const wanted = new Set(request.environments ?? defaultTierEnvironments);
  return {
    name,
    ...byName(amounts, ({ wire }) => request[wire] ?? null),
    environments: environments.filter((environment) => wanted.has(environment)),
    quotas: quotaRules(request.quotas ?? null),
    priority: request.priority ?? defaultPriority,
  };
}

/**
 * Returns the audit event of a deletion. Throws if the tier must not be deleted. `accounts` is the number of accounts
 * with the tier, `stored` the tier in the database.
 */
export function deleteTier(
  principal: Principal,
  name: string,
  { stored, accounts }: { stored: Tier | undefined; accounts: number },
  tiers: Pick<Tiers, "get" | "isGivenElsewhere">,
  origin: Origin,
): AuditEvent {
  requireOperator(principal);
  if (!stored) {
    const current = tiers.get(name);
    if (!current) throw unknownTier(name);
    if (current.source === "file") throw givenByFile(name);
    throw forbidden(`The tier ${name} is built in and cannot be deleted; PUT changes it.`);
  }
  if (accounts > 0 && !tiers.isGivenElsewhere(name)) {
    const have = accounts === 1 ? "1 account has" : `${accounts} accounts have`;
    throw invalidRequest(`${have} the tier ${name}: give them another with PATCH /v1/admin/accounts/{id} first.`);
  }
  return auditEvent("tier.deleted", principal, origin, aboutInstallation(name, figuresToWire(stored)));
}

/** Returns the error for a tier that does not exist, or that another deletion removed first. */
export function unknownTier(name: string): GatewayError {
  return new GatewayError("not_found", `There is no tier ${shown(name)}. GET /v1/admin/tiers lists the tiers.`);
}

export function tierToWire(tier: KnownTier, accounts: number): TierWire {
  return { object: "tier", name: tier.name, ...figuresToWire(tier), source: tier.source, accounts };
}

function requireTierName(name: string): void {
  if (tierNamePattern.test(name)) return;
  throw invalidRequest(
    "name: must be 1 to 63 lower-case letters, digits, dots, underscores or hyphens, beginning with a letter or digit.",
  );
}

function givenByFile(name: string): GatewayError {
  return forbidden(
    `The tier ${name} is defined in headrace.yaml and read-only here: change it under \`tiers\` in that file.`,
  );
}

/** Returns the figures in the form of the API. */
export function figuresToWire(tier: Tier) {
  return {
    ...byWire(amounts, ({ name }) => tier[name]),
    quotas: rulesOnWire(tier.quotas ?? []),
    environments: [...tier.environments],
    priority: tier.priority,
  };
}
