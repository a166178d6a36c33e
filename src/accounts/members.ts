// Members of an account: the rules for who may see, invite, change and remove whom.

import { forbidden, GatewayError } from "../base/errors.ts";
import type { AuditEvent } from "../domain/audit.ts";
import type { QuotaRule } from "../domain/limits/quota-rules.ts";
import type { Membership } from "../domain/people/person.ts";
import type { Role } from "../domain/people/role.ts";
import type { Principal } from "../domain/principal.ts";
import { requireToolsWithin } from "../policy/manage/delegation.ts";
import { auditEvent, type Origin } from "../policy/records/audit.ts";
import { rulesOnWire } from "../wire/quotas.ts";

/** A member's role, or `operator`: an operator may do in every account what its owner may do. */
type ActorRole = Role | "operator";

/** The facts of a member on whom another person acts. */
export type TargetMember = Pick<Membership, "id" | "accountId" | "personId" | "role">;

/** Throws `permission_denied`: only owners and admins may see who else is in the account. */
export function requireSeesMembers(by: Principal, accountId: string): void {
  if (actorRoleIn(by, accountId) !== "member") return;
  throw forbidden("Only owners and admins see the members of an account.");
}

/** Throws `permission_denied`: only the account's owners and admins may see what others did. */
export function requireSeesAudit(by: Principal, accountId: string): void {
  if (actorRoleIn(by, accountId) !== "member") return;
  throw forbidden("Only owners and admins see the audit log of an account.");
}

/** Throws `permission_denied` if the principal may not invite with this role. */
export function requireMayInvite(by: Principal, accountId: string, role: Role): void {
  if (mayActOn(actorRoleIn(by, accountId), role)) return;
  throw forbidden(
    role === "member"
      ? "Only owners and admins may invite somebody into an account."
      : `role: only an owner may invite ${role === "owner" ? "an owner" : "an admin"}; admins may invite members.`,
  );
}

/** Throws `permission_denied` if the principal may not withdraw an invitation with this role. */
export function requireMayWithdraw(by: Principal, accountId: string, role: Role): void {
  if (mayActOn(actorRoleIn(by, accountId), role)) return;
  throw forbidden("Only whoever may make such an invitation may take it back.");
}

/**
 * Returns the change of a member's role; undefined if the role is the same. Throws `permission_denied` if the principal
 * may not make the change.
 */
export function changeRole(
  by: Principal,
  target: TargetMember,
  role: Role,
  origin: Origin,
): { role: Role; event: AuditEvent } | undefined {
  const actorRole = actorRoleIn(by, target.accountId);
  if (isSelf(by, target)) throw forbidden("role: nobody changes their own role.");
  if (actorRole !== "owner" && actorRole !== "operator") {
    throw forbidden("role: only an owner of the account may change roles.");
  }
  if (target.role === role) return undefined;
  const detail = { role: { before: target.role, after: role } };
  return { role, event: auditEvent("member.updated", by, origin, about(target, detail)) };
}

/**
 * Returns the change of a member's quotas; undefined if they are the same. Throws `permission_denied` if the principal
 * may not make the change.
 */
export function changeMemberQuotas(
  by: Principal,
  target: TargetMember & Pick<Membership, "quotas">,
  quotas: readonly QuotaRule[],
  origin: Origin,
): { quotas: readonly QuotaRule[]; event: AuditEvent } | undefined {
  if (!mayActOn(actorRoleIn(by, target.accountId), target.role)) {
    throw forbidden("quotas: only owners, and admins for members, may say how much somebody may use.");
  }
  const before = target.quotas ?? [];
  if (Bun.deepEquals(before, quotas)) return undefined;
  const detail = { quotas: { before: rulesOnWire(before), after: rulesOnWire(quotas) } };
  return { quotas, event: auditEvent("member.updated", by, origin, about(target, detail)) };
}

/**
 * Throws `permission_denied` if the principal may not raise the limits of a member with this role, or of the account,
 * for a time.
 */
export function requireMayRaise(
  by: Principal,
  { accountId, owner, role }: { accountId: string; owner: "member" | "account"; role: Role },
): void {
  const actorRole = actorRoleIn(by, accountId);
  if (actorRole === "operator") return;
  if (owner === "account") throw forbidden("Only operators raise the limits of an account.");
  if (mayActOn(actorRole, role)) return;
  throw forbidden("Only owners, and admins for members, raise the limits of somebody.");
}

/**
 * Returns the change of a member's tools; undefined if they are the same. Throws `permission_denied` if the principal
 * may not make the change.
 */
export function changeMemberTools(
  by: Principal,
  target: TargetMember & Pick<Membership, "tools">,
  tools: readonly string[] | null,
  origin: Origin,
): { tools: readonly string[] | null; event: AuditEvent } | undefined {
  if (!mayActOn(actorRoleIn(by, target.accountId), target.role)) {
    throw forbidden("tools: only owners, and admins for members, may say which tools somebody may use.");
  }
  requireToolsWithin(by, tools);
  const before = target.tools ?? null;
  if (Bun.deepEquals(before, tools)) return undefined;
  const detail = { tools: { before, after: tools } };
  return { tools, event: auditEvent("member.updated", by, origin, about(target, detail)) };
}

/**
 * Returns the change of whether the member sees the usage of others; undefined if it is the same. Throws
 * `permission_denied` if the principal may not make the change.
 */
export function changeSight(
  by: Principal,
  target: TargetMember & Pick<Membership, "seesAllUsage">,
  seesAllUsage: boolean,
  origin: Origin,
): { seesAllUsage: boolean; event: AuditEvent } | undefined {
  const actorRole = actorRoleIn(by, target.accountId);
  if (actorRole !== "owner" && actorRole !== "operator") {
    throw forbidden("sees_all_usage: only an owner of the account may say who sees the usage of others.");
  }
  if (target.seesAllUsage === seesAllUsage) return undefined;
  const detail = { sees_all_usage: { before: target.seesAllUsage, after: seesAllUsage } };
  return { seesAllUsage, event: auditEvent("member.updated", by, origin, about(target, detail)) };
}

/**
 * Returns the event for the removal of a member. Every member may leave, but the store refuses this for the last owner.
 * Throws `permission_denied` if the principal may not remove the member.
 */
export function removeMember(by: Principal, target: TargetMember, origin: Origin): { event: AuditEvent } {
  const actorRole = actorRoleIn(by, target.accountId);
  if (!isSelf(by, target) && !mayActOn(actorRole, target.role)) {
    throw forbidden(
      actorRole === "admin"
        ? "Only an owner may remove an owner or an admin."
        : "Only owners and admins may remove somebody from an account.",
    );
  }
  const detail = { role: target.role, left: isSelf(by, target) };
  return { event: auditEvent("member.removed", by, origin, about(target, detail)) };
}

/**
 * Checks the store's result of a change. Throws `not_found` if the member does not exist, and `permission_denied` for
 * the last owner.
 */
export function requireChanged(outcome: "done" | "missing" | "last_owner"): void {
  if (outcome === "missing") throw new GatewayError("not_found", "There is no such member of this account.");
  if (outcome === "done") return;
  throw forbidden("An account keeps at least one owner. Make somebody else an owner first.");
}

/**
 * Returns the principal's role. Throws `permission_denied` for principals without a role in the account: keys and apps,
 * and members of other accounts.
 */
function actorRoleIn(by: Principal, accountId: string): ActorRole {
  if (by.appId === null && by.scopes.has("admin:manage")) return "operator";
  if (by.person && by.account.id === accountId) return by.person.role;
  throw forbidden(
    "Members of an account are managed by people who are signed in as its owners or admins; API keys and apps cannot.",
  );
}

/** Reports who may act on whom: members on nobody, admins on members, owners and operators on all. */
function mayActOn(actorRole: ActorRole, role: Role): boolean {
  if (actorRole === "operator" || actorRole === "owner") return true;
  return actorRole === "admin" && role === "member";
}

function isSelf({ person }: Principal, target: TargetMember): boolean {
  return person?.id === target.personId;
}

function about({ id, accountId, personId }: TargetMember, detail: Record<string, unknown>) {
  return { accountId, targetId: id, detail: { person_id: personId, ...detail } };
}
