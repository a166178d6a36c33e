// The log as code sees it: an event name and fields, never free text and never the content of requests.

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export const logLevels = ["info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];

/** Settings for which requests a log line is written. Errors and refusals always get one. */
export interface RequestLogSettings {
  /** The logged share of the successful requests, 0 to 1. */
  readonly sample: number;
  /** A request that takes this long is slow: its line is a warning and is always written. Infinity for none. */
  readonly slowMs: number;
}

export interface Log {
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}
