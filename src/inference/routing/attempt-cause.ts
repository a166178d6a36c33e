// Classifies why an attempt at a model server failed.
import { GatewayError } from "../../base/errors.ts";
import { EngineFault } from "../../domain/models/engine.ts";
import type { AttemptCause } from "../../domain/usage/attempt-health.ts";
import { unpaidReason } from "../../requests/dialects/engine-fault.ts";

/**
 * Returns the cause of a failed attempt. `status` is the HTTP status of an error answer, if there was one. `otherwise`
 * is returned if the error shows no other cause.
 */
export function causeOf(error: unknown, status: number | undefined, otherwise: AttemptCause): AttemptCause {
  if (error instanceof EngineFault) return error.attemptCause;
  if (!(error instanceof GatewayError)) return otherwise;
  if (error.message === unpaidReason) return "quota";
  if (error.engineLimited === true) return "rate_limit";
  if (status === 401 || status === 403 || status === 407) return "authentication";
  if (status === 404) return "not_found";
  if (error.code === "upstream_timeout") return "timeout";
  return error.code === "service_unavailable" ? "overload" : otherwise;
}
