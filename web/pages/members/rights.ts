// Who may do what to whom among the members of an account, as the server judges it, so that a page can say it beforehand.
import type { CurrentSession } from "../../api/session.tsx";
import type { Member } from "../../api/types.ts";
import { type Role, roles } from "../../parts/membership/roles.ts";

/** Operators may do what owners may. */
export type Standing = Role | "operator";

export function standingOf({ session }: Pick<CurrentSession, "session">): Standing {
  return session.scopes.includes("admin:manage") ? "operator" : session.role;
}

export function invitableRoles(standing: Standing): readonly Role[] {
  return roles.filter((role) => mayActOn(standing, role));
}

interface Question {
  member: Member;
  standing: Standing;
  isSelf: boolean;
  /** Where all members are known. */
  isLastOwner: boolean;
}

const keepsOwner = "An account needs at least one owner. Make another member an owner first.";

/** Undefined where the role may be changed. */
export function whyNoOtherRole({ standing, isSelf, isLastOwner }: Question): string | undefined {
  if (isSelf) return "You cannot change your own role. Ask another owner.";
  if (standing !== "owner" && standing !== "operator") return "Only owners can change roles.";
  return isLastOwner ? keepsOwner : undefined;
}

/** Undefined where it may be said whose usage they see. */
export function whyNoSight({ standing }: Question): string | undefined {
  return standing === "owner" || standing === "operator"
    ? undefined
    : "Only owners can let a member see the usage of others.";
}

/** Undefined where it may be said how much they may use. */
export function whyNoQuotas({ member, standing }: Question): string | undefined {
  return mayActOn(standing, member.role) ? undefined : "Only owners can set quotas for owners and admins.";
}

/** Undefined where it may be said which tools they may use. */
export function whyNoTools({ member, standing }: Question): string | undefined {
  return mayActOn(standing, member.role) ? undefined : "Only owners can choose the tools of owners and admins.";
}

/** Undefined where they may be removed, or leave. */
export function whyNoRemoval({ member, standing, isSelf, isLastOwner }: Question): string | undefined {
  if (isLastOwner) return keepsOwner;
  if (isSelf || mayActOn(standing, member.role)) return undefined;
  return "Only owners can remove owners and admins.";
}

/** Members act on nobody, admins on members, owners and operators on all. */
export function mayActOn(standing: Standing, role: Role): boolean {
  if (standing === "operator" || standing === "owner") return true;
  return standing === "admin" && role === "member";
}
