// The roles of members of an account, which say what they may do there.
export const roles = ["owner", "admin", "member"] as const;
/** Members have their own keys, apps and chats; admins manage all of the account's; owners its owners and admins as well. */
export type Role = (typeof roles)[number];
