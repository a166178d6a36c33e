// Decides which requests are logged, and at which level. Failed requests are always logged. Successful requests may be
// sampled.
import type { LogFields, LogLevel, RequestLogSettings } from "../../base/log.ts";

export const everyRequest: RequestLogSettings = { sample: 1, slowMs: Number.POSITIVE_INFINITY };

type Fields = Record<string, LogFields[string]>;

/**
 * Returns the log level, or undefined if the request is not logged. A sampled line gets the sampling rate in `sampled`.
 * `draw` returns a random number from 0 to below 1.
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
 * Reports whether the gateway or a model server failed, even if another model server then answered. A client that left,
 * or a client error, is no failure.
 */
function isFailure({ status, outcome, attempts }: LogFields): boolean {
  return Number(status) >= 500 || outcome === "failed" || attempts !== undefined;
}

function wentWell({ status, code, outcome }: LogFields): boolean {
  return Number(status) < 400 && code === undefined && (outcome === undefined || outcome === "completed");
}
