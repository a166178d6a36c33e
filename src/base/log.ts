// The interface for logging: each entry is an event name with fields, never free text or the content of requests.

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export const logLevels = ["info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];

/** Decides which requests get a log line. Errors and refusals always get one. */
export interface RequestLogSettings {
  /** Share of the successful requests that are logged, 0 to 1. */
  readonly sample: number;
  /**
   * A request that takes at least this long is slow: it is always logged, as a warning. Infinity if no request counts
   * as slow.
   */
  readonly slowMs: number;
}

export interface Log {
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}
