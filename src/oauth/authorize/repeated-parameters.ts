// No parameter twice (RFC 6749, 3.1): of two values, the app and we might each take another.
import type { Check } from "./check.ts";

/** What is unknown is ignored, and `resource` may be repeated (RFC 8707, 2). */
const known = [
  "response_type",
  "response_mode",
  "scope",
  "state",
  "code_challenge",
  "code_challenge_method",
  "prompt",
  "request",
  "request_uri",
];

export const repeatedParameters: Check = ({ parameters }) => {
  const name = known.find((one) => parameters.isRepeated(one));
  return name === undefined ? undefined : { error: "invalid_request", description: `${name}: send it once.` };
};
