// The port by which processes that share a database notify each other of changes, so that no process has to wait for
// its next poll.

/**
 * `credentials`: keys, accounts, tiers, grants; `routing`: upstreams, nodes and MCP servers; `connections`: which
 * process holds which node; `answers`: the response cache was cleared.
 */
export type ChangeTopic = "credentials" | "routing" | "connections" | "answers";

/** A hint without a guarantee: subscribers also poll. A single process has no other process to notify. */
export interface ChangeFeed {
  /**
   * Announces a committed change. Never throws; the next poll finds what could not be announced. `ids` has all affected
   * ids, for subscribers that cannot poll; missing if any id may be affected.
   */
  announce(topic: ChangeTopic, ids?: readonly string[]): void;
  /**
   * Calls `listener` with the ids of changes by other processes; without ids also if changes may have been missed, as
   * after a broken connection.
   */
  onChange(topic: ChangeTopic, listener: (ids?: readonly string[]) => void): void;
}

/** The feed of a process that does not share its database. */
export const noChangeFeed: ChangeFeed = { announce() {}, onChange() {} };
