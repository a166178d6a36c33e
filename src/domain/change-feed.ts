// The port by which processes that share a database tell each other that something changed, so that nobody has to wait for its next look.

/** `credentials`: keys, accounts, tiers, grants; `routing`: upstreams, nodes and MCP servers; `connections`: which process holds which node; `answers`: kept ones were forgotten. */
export type ChangeTopic = "credentials" | "routing" | "connections" | "answers";

/**
 * A hint, not a promise: who depends on it also looks by itself now and then. In a single process nobody else is there to
 * be told.
 */
export interface ChangeFeed {
  /**
   * After it was committed. Never throws; what cannot be told is found by the next look. `ids`: of all that it is about, for
   * those who cannot look; left out where that may be anything.
   */
  announce(topic: ChangeTopic, ids?: readonly string[]): void;
  /**
   * Called for changes by others, with what was told of them; without it also when some may have been missed, as after a
   * broken connection.
   */
  onChange(topic: ChangeTopic, listener: (ids?: readonly string[]) => void): void;
}

/** The feed of a process that shares its database with nobody. */
export const noChangeFeed: ChangeFeed = { announce() {}, onChange() {} };
