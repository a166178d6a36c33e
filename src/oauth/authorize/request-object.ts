// Requests as signed objects (RFC 9101) are not served: what they say must not be passed over.
import type { Check } from "./check.ts";

export const requestObject: Check = ({ parameters }) => {
  if (parameters.get("request") !== undefined) {
    return { error: "request_not_supported", description: "request: send the parameters in the query instead." };
  }
  if (parameters.get("request_uri") !== undefined) {
    return {
      error: "request_uri_not_supported",
      description: "request_uri: send the parameters in the query instead.",
    };
  }
  return undefined;
};
