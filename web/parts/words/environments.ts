// The environments in words.
import type { Environment } from "../../api/client.ts";

export const environmentNames: Record<Environment, string> = { live: "Live", test: "Test", dev: "Development" };

/** The entries of a choice of one or some. */
export function environmentChoices(environments: readonly Environment[]): { value: Environment; label: string }[] {
  return environments.map((value) => ({ value, label: environmentNames[value] }));
}

export const allEnvironments = Object.keys(environmentNames) as Environment[];

/** "Live, Test". */
export function environmentList(environments: readonly Environment[]): string {
  return environments.map((one) => environmentNames[one]).join(", ");
}
