// Decides which requests get a log line, and at which level: failures always, successes possibly by sampling.
import type { LogFields, LogLevel, RequestLogSettings } from "../../base/log.ts";

export const everyRequest: RequestLogSettings = { sample: 1, slowMs: Number.POSITIVE_INFINITY };

type Fields = Record<string, LogFields[string]>;

/**
 * Returns the level; undefined for no line. `fields` have the status, and `code` or `outcome` if the request failed. A
 * sampled line records the rate in `sampled`, so that requests can be counted. `draw` is a random number from 0 to
 * below 1.
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
 * Reports whether the gateway or a model server failed. A client that left, and a refusal below 500, are not failures.
 */
function isFailure({ status, outcome }: LogFields): boolean {
  return Number(status) >= 500 || outcome === "failed";
}

function wentWell({ status, code, outcome }: LogFields): boolean {
  return Number(status) < 400 && code === undefined && (outcome === undefined || outcome === "completed");
}
