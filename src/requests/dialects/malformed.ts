// Errors for an answer of a model server that does not follow the requested format.
import { GatewayError } from "../../base/errors.ts";

/** Returns the error for an answer that does not follow the requested format. `detail` appears only in the log. */
export function malformed(detail: string): GatewayError {
  return new GatewayError("upstream_error", "The model server sent an answer that cannot be read.", { detail });
}
