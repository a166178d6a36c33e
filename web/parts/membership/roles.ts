// The roles of an account's members, in words.
import type { Member } from "../../api/types.ts";

export type Role = Member["role"];

/** The most powerful role comes first. */
export const roles = ["owner", "admin", "member"] as const satisfies readonly Role[];

export const roleNames: Record<Role, string> = { owner: "Owner", admin: "Admin", member: "Member" };

export const roleMeanings: Record<Role, string> = {
  owner: "Manages the whole account, including its owners and admins.",
  admin: "Manages all keys, apps and members of the account.",
  member: "Manages only their own keys, apps and chats.",
};
