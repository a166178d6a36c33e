// The environments in words.
import type { Environment } from "../../api/client.ts";

export const environmentNames: Record<Environment, string> = { live: "Live", test: "Test", dev: "Development" };

/** Returns the options of a select field for one or several environments. */
export function environmentChoices(environments: readonly Environment[]): { value: Environment; label: string }[] {
  return environments.map((value) => ({ value, label: environmentNames[value] }));
}

export const allEnvironments = Object.keys(environmentNames) as Environment[];

/** Returns text such as "Live, Test". */
export function environmentList(environments: readonly Environment[]): string {
  return environments.map((one) => environmentNames[one]).join(", ");
}
