// Which field of a form a refusal is about: the server's messages begin with its name.
import type { ApiFailure } from "./client.ts";

/** By the field's name on the wire. What is said of one item of a list is said of the list. Empty where no field is named. */
export function fieldErrors(failure: ApiFailure | null): Partial<Record<string, string>> {
  const [, field, said] = /^([a-z0-9_]+)(?:\[\d+\])?: (.*)$/s.exec(failure?.message ?? "") ?? [];
  if (field === undefined || said === undefined) return {};
  return { [field]: said.charAt(0).toUpperCase() + said.slice(1) };
}
