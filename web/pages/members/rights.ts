// The rules for actions among members, as the server enforces them, so that pages can explain them beforehand.
import type { CurrentSession } from "../../api/session.tsx";
import type { Member } from "../../api/types.ts";
import { type Role, roles } from "../../parts/membership/roles.ts";

/** Operators have the rights of owners. */
export type ActorRole = Role | "operator";

export function actorRoleOf({ session }: Pick<CurrentSession, "session">): ActorRole {
  return session.scopes.includes("admin:manage") ? "operator" : session.role;
}

export function invitableRoles(actorRole: ActorRole): readonly Role[] {
  return roles.filter((role) => mayActOn(actorRole, role));
}

interface Question {
  member: Member;
  actorRole: ActorRole;
  isSelf: boolean;
  /** True if the member is the last owner; only reliable if all members are loaded. */
  isLastOwner: boolean;
}

const keepsOwner = "An account needs at least one owner. Make another member an owner first.";

/** Returns why the role may not be changed, or undefined if it may. */
export function whyNoOtherRole({ actorRole, isSelf, isLastOwner }: Question): string | undefined {
  if (isSelf) return "You cannot change your own role. Ask another owner.";
  if (actorRole !== "owner" && actorRole !== "operator") return "Only owners can change roles.";
  return isLastOwner ? keepsOwner : undefined;
}

/** Returns why the member's visibility may not be changed, or undefined if it may. */
export function whyNoSight({ actorRole }: Question): string | undefined {
  return actorRole === "owner" || actorRole === "operator"
    ? undefined
    : "Only owners can let a member see the usage of others.";
}

/** Returns why the member's quotas may not be changed, or undefined if they may. */
export function whyNoQuotas({ member, actorRole }: Question): string | undefined {
  return mayActOn(actorRole, member.role) ? undefined : "Only owners can set quotas for owners and admins.";
}

/** Returns why the member's tools may not be changed, or undefined if they may. */
export function whyNoTools({ member, actorRole }: Question): string | undefined {
  return mayActOn(actorRole, member.role) ? undefined : "Only owners can choose the tools of owners and admins.";
}

/** Returns why the member may not be removed or leave, or undefined if that is allowed. */
export function whyNoRemoval({ member, actorRole, isSelf, isLastOwner }: Question): string | undefined {
  if (isLastOwner) return keepsOwner;
  if (isSelf || mayActOn(actorRole, member.role)) return undefined;
  return "Only owners can remove owners and admins.";
}

/** Members may act on nobody, admins on members, owners and operators on everybody. */
export function mayActOn(actorRole: ActorRole, role: Role): boolean {
  if (actorRole === "operator" || actorRole === "owner") return true;
  return actorRole === "admin" && role === "member";
}
