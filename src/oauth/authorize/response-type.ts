// Only codes are given out: tokens in an address leak (RFC 9700, 2.1.2).
import type { Check } from "./check.ts";

export const responseType: Check = ({ parameters }) => {
  const type = parameters.get("response_type");
  if (type === "code") return undefined;
  if (type === undefined)
    return { error: "invalid_request", description: "response_type: must be code; it is missing." };
  return { error: "unsupported_response_type", description: "response_type: must be code." };
};
