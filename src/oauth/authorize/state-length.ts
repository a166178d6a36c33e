// The app's own state is sent back as it came; it must fit into an address.
import type { Check } from "./check.ts";

const longestState = 2_048;

export const stateLength: Check = ({ parameters }) => {
  if ((parameters.get("state")?.length ?? 0) <= longestState) return undefined;
  return { error: "invalid_request", description: `state: at most ${longestState} characters.` };
};
