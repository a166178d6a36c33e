// The roles that members of an account have, in words.
import type { Member } from "../../api/types.ts";

export type Role = Member["role"];

/** Those who may most come first. */
export const roles = ["owner", "admin", "member"] as const satisfies readonly Role[];

export const roleNames: Record<Role, string> = { owner: "Owner", admin: "Admin", member: "Member" };

export const roleMeanings: Record<Role, string> = {
  owner: "Manages everything of the account, its owners and admins included.",
  admin: "Manages all keys and apps of the account, and its members.",
  member: "Has keys, apps and chats of their own, and sees nobody else's.",
};
