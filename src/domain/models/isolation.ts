// Describes how requests of several accounts are kept apart at a shared model server.

/**
 * The ways in which a model server can get the ids by which clients identify their users and the prompts that share a
 * cache.
 */
export const identifierWays = ["hashed", "as_sent", "removed"] as const;
export type IdentifierWay = (typeof identifierWays)[number];

export interface Isolation {
  /** True if each request gets a `cache_salt` of its account, so that accounts do not share the server's cache. */
  readonly cacheSalt: boolean;
  /** True if each request is sent with the `priority` of its sender. */
  readonly priority: boolean;
  readonly identifiers: IdentifierWay;
}

/** Members of a request by which a model server identifies a user, chooses a cache or orders its queue. */
export const isolatedMembers = ["user", "safety_identifier", "prompt_cache_key", "cache_salt", "priority"] as const;

/** A member of a request, and the offsets of its value in the body's bytes. Both offsets are 0 if unknown. */
export interface IsolatedMember {
  readonly name: (typeof isolatedMembers)[number] | "metadata";
  readonly start: number;
  readonly end: number;
}
