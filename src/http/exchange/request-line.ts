// Decides which requests are logged, and at which level. Failures always are; successes may be sampled.
import type { LogFields, LogLevel, RequestLogSettings } from "../../base/log.ts";

export const everyRequest: RequestLogSettings = { sample: 1, slowMs: Number.POSITIVE_INFINITY };

type Fields = Record<string, LogFields[string]>;

/**
 * Returns the log level, or undefined to skip the request. A sampled line gets the rate in `sampled`. `draw`
 * returns a random number from 0 to below 1.
 */
export function levelOfLine(
  fields: Fields,
  durationMs: number,
  settings: RequestLogSettings,
  draw: () => number,
): LogLevel | undefined {
  if (fields["code"] === "internal_error") return "error";
  if (durationMs >= settings.slowMs) {
    fields["slow"] = true;
    return "warn";
  }
  if (isFailure(fields)) return "warn";
  if (settings.sample >= 1 || !wentWell(fields)) return "info";
  if (draw() >= settings.sample) return undefined;
  fields["sampled"] = settings.sample;
  return "info";
}

/**
 * Reports whether the gateway or a model server failed, even if another model server answered then. Clients that left,
 * and client errors, are no failures.
 */
function isFailure({ status, outcome, attempts }: LogFields): boolean {
  return Number(status) >= 500 || outcome === "failed" || attempts !== undefined;
}

function wentWell({ status, code, outcome }: LogFields): boolean {
  return Number(status) < 400 && code === undefined && (outcome === undefined || outcome === "completed");
}
