// The roles of members of an account, with their rights.
export const roles = ["owner", "admin", "member"] as const;
/**
 * A member manages only their own keys, apps and chats. An admin manages those of the whole account. An owner also
 * manages the account's owners and admins.
 */
export type Role = (typeof roles)[number];
