// The port by which processes with the same database notify each other of changes. Without it, each would learn of a
// change only at its next poll.

/**
 * `credentials`: keys, accounts, tiers and grants. `routing`: upstreams, nodes and MCP servers. `connections`: which
 * process holds a node's connection. `answers`: the response cache was cleared.
 */
export type ChangeTopic = "credentials" | "routing" | "connections" | "answers";

/** Notifications may be lost, so subscribers also poll. A single process has no other process to notify. */
export interface ChangeFeed {
  /**
   * Notifies other processes of a committed change. Never throws: if this fails, they learn of the change at their next
   * poll. `ids` are the affected ids, for subscribers that cannot poll. Missing means that any id may be affected.
   */
  announce(topic: ChangeTopic, ids?: readonly string[]): void;
  /**
   * Calls `listener` with the ids that another process announced. Without ids, any id may be affected: the process
   * announced none, or changes may have been missed, for example after a broken connection.
   */
  onChange(topic: ChangeTopic, listener: (ids?: readonly string[]) => void): void;
}

/** Used by a process that shares its database with no other process. */
export const noChangeFeed: ChangeFeed = { announce() {}, onChange() {} };
