// The answer goes into the query of the redirect address, and nowhere else.
import type { Check } from "./check.ts";

export const responseMode: Check = ({ parameters }) => {
  const mode = parameters.get("response_mode");
  if (mode === undefined || mode === "query") return undefined;
  return { error: "invalid_request", description: "response_mode: must be query, or left out." };
};
