// The roles of members of an account, with their rights.
export const roles = ["owner", "admin", "member"] as const;
/** Members manage their own keys, apps and chats; admins all of the account's; owners also its owners and admins. */
export type Role = (typeof roles)[number];
