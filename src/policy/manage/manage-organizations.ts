// Creates and changes organizations: makes the records and audit events, which a store writes in one step.
import { GatewayError } from "../../base/errors.ts";
import { shown } from "../../base/text/shown.ts";
import type { AuditAction, AuditEvent } from "../../domain/audit.ts";
import { accountAmounts, byName, byWire } from "../../domain/limits/amounts.ts";
import type { Organization, OrganizationChanges } from "../../domain/organization.ts";
import type { Principal } from "../../domain/principal.ts";
import type { OrganizationWire, UpdateOrganizationRequest } from "../../wire/operations/organizations.ts";
import { rulesOnWire } from "../../wire/quotas.ts";
import { aboutInstallation, auditEvent, changedMembers, type Origin } from "../records/audit.ts";
import { keyName, quotaRules } from "./key-values.ts";
import { requireOperator } from "./operator.ts";

export function createOrganization(
  principal: Principal,
  request: UpdateOrganizationRequest & { name: string },
  origin: Origin,
): { organization: Organization; event: AuditEvent } {
  requireOperator(principal);
  const organization: Organization = {
    ...byName(accountAmounts, () => null),
    ...{ id: `org_${Bun.randomUUIDv7()}`, name: "", quotas: [], createdAt: origin.nowSeconds, membersRevision: 0 },
    ...changesOf(request),
  };
  const detail = settingsOf(organization);
  return { organization, event: organizationEvent("organization.created", principal, origin, organization, detail) };
}

/** Changes an organization. Returns undefined if the request changes nothing. */
export function updateOrganization(
  principal: Principal,
  current: Organization,
  request: UpdateOrganizationRequest,
  origin: Origin,
): { changes: OrganizationChanges; event: AuditEvent } | undefined {
  requireOperator(principal);
  const changes = changesOf(request);
  const detail = changedMembers(settingsOf(current), settingsOf({ ...current, ...changes }));
  if (Object.keys(detail).length === 0) return undefined;
  return { changes, event: organizationEvent("organization.updated", principal, origin, current, detail) };
}

export function deleteOrganization(principal: Principal, current: Organization, origin: Origin): AuditEvent {
  requireOperator(principal);
  return organizationEvent("organization.deleted", principal, origin, current, settingsOf(current));
}

/** Returns the event of an account that joins or leaves. The event is in the audit log of the account. */
export function moveEvent(
  action: "organization.account_added" | "organization.account_removed",
  principal: Principal,
  { id, name }: Organization,
  accountId: string,
  origin: Origin,
): AuditEvent {
  requireOperator(principal);
  return auditEvent(action, principal, origin, { accountId, targetId: id, detail: { name, account: accountId } });
}

/** Returns the organization. Throws `not_found` if it is undefined. */
export function requireOrganization(organization: Organization | undefined, id: string): Organization {
  if (organization) return organization;
  throw new GatewayError(
    "not_found",
    `There is no organization ${shown(id)}. GET /v1/admin/organizations lists the organizations.`,
  );
}

export function organizationToWire(organization: Organization, accounts: number): OrganizationWire {
  const { id, createdAt } = organization;
  return { object: "organization", id, ...settingsOf(organization), accounts, created_at: createdAt };
}

function changesOf(request: UpdateOrganizationRequest): OrganizationChanges {
  const changes: OrganizationChanges = {};
  if (request.name !== undefined) changes.name = keyName(request.name);
  for (const { name, wire } of accountAmounts) if (request[wire] !== undefined) changes[name] = request[wire];
  if (request.quotas !== undefined) changes.quotas = quotaRules(request.quotas);
  return changes;
}

function settingsOf(organization: Organization) {
  return {
    name: organization.name,
    ...byWire(accountAmounts, ({ name }) => organization[name]),
    quotas: rulesOnWire(organization.quotas),
  };
}

function organizationEvent(
  action: AuditAction,
  principal: Principal,
  origin: Origin,
  { id }: Organization,
  detail: Record<string, unknown>,
): AuditEvent {
  return auditEvent(action, principal, origin, aboutInstallation(id, detail));
}
