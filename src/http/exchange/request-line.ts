// Which requests get a line in the log, and of which level: faults always, what went well perhaps by a sample.
import type { LogFields, LogLevel, RequestLogSettings } from "../../base/log.ts";

export const everyRequest: RequestLogSettings = { sample: 1, slowMs: Number.POSITIVE_INFINITY };

type Fields = Record<string, LogFields[string]>;

/**
 * Undefined: none. `fields` have the status, and `code` or `outcome` where it did not go well; a line that stands for
 * others says so in `sampled`, so that they can be counted. `draw`: at random, from 0 to below 1.
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

/** Reports whether the gateway or a model server failed. A client that left, and a refusal below 500, are no failures. */
function isFailure({ status, outcome }: LogFields): boolean {
  return Number(status) >= 500 || outcome === "failed";
}

function wentWell({ status, code, outcome }: LogFields): boolean {
  return Number(status) < 400 && code === undefined && (outcome === undefined || outcome === "completed");
}
