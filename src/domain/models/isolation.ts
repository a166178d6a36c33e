// How requests of several accounts are kept apart at one model server.

/** What happens to the names by which clients tell a server of their users and of prompts that belong together. */
export const identifierWays = ["hashed", "as_sent", "removed"] as const;
export type IdentifierWay = (typeof identifierWays)[number];

export interface Isolation {
  /** Whether each has a `cache_salt` of its account, so that no account finds in the server's cache what another asked. */
  readonly cacheSalt: boolean;
  /** Whether each has the `priority` of its sender. */
  readonly priority: boolean;
  readonly identifiers: IdentifierWay;
}

/** Members of a request that name its user, or a cache, or a turn, at the model server. */
export const isolatedMembers = ["user", "safety_identifier", "prompt_cache_key", "cache_salt", "priority"] as const;

/** One that is there, with the offsets of its value in the bytes; both 0 where nobody looked. */
export interface IsolatedMember {
  readonly name: (typeof isolatedMembers)[number] | "metadata";
  readonly start: number;
  readonly end: number;
}
