// The environments in words.
import type { Environment } from "../api/client.ts";

export const environmentNames: Record<Environment, string> = { live: "Live", test: "Test", dev: "Development" };

/** All of them, for choices. */
export const environmentChoices = (Object.keys(environmentNames) as Environment[]).map((value) => ({
  value,
  label: environmentNames[value],
}));
