// What a model server sent that is no answer in the format that it was asked in.
import { GatewayError } from "../../base/errors.ts";

/** `detail` is for the log. */
export function malformed(detail: string): GatewayError {
  return new GatewayError("upstream_error", "The model server sent an answer that cannot be read.", { detail });
}
