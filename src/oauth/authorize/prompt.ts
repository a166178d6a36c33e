// Whether the person may be asked: `prompt`, as OpenID Connect Core, 3.1.2.1, has it.
import type { Check } from "./check.ts";
import type { Parameters } from "./parameters.ts";

/** `never`: `none`. `always`: whatever else was sent. `as_needed`: nothing was. */
export function askingWanted(parameters: Parameters): "never" | "always" | "as_needed" {
  const prompt = parameters.get("prompt");
  if (prompt === undefined) return "as_needed";
  return prompt === "none" ? "never" : "always";
}

export const prompt: Check = ({ parameters }) => {
  const values = parameters.get("prompt")?.split(" ") ?? [];
  if (!values.includes("none") || values.length === 1) return undefined;
  return { error: "invalid_request", description: "prompt: none goes with no other value." };
};
