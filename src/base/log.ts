// The log as code sees it: an event name and fields, never free text and never content of requests.

export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

export const logLevels = ["info", "warn", "error"] as const;
export type LogLevel = (typeof logLevels)[number];

/** Settings that say which requests' lines are written; errors and refusals always are. */
export interface RequestLogSettings {
  /** Share of the requests that went well, 0 to 1. */
  readonly sample: number;
  /** The duration from which a request is slow: its line is a warning, and always written. Infinity: none is. */
  readonly slowMs: number;
}

export interface Log {
  info(event: string, fields?: LogFields): void;
  warn(event: string, fields?: LogFields): void;
  error(event: string, fields?: LogFields): void;
}
