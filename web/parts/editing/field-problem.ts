// Finds the field that an error of the server is about, so that it can be shown there.
import type { ApiFailure } from "../../api/client.ts";

/** Matches messages such as `tier: there is no such tier.` and `environments[0]: …`. */
const aboutField = /^([a-z_]+)[^\s:]*: (.+)$/s;

/** Returns the server's error about the field, or undefined. */
export function problemOf(error: ApiFailure | null, field: string): string | undefined {
  const [, name, text] = aboutField.exec(error?.message ?? "") ?? [];
  return name === field && text !== undefined ? text.charAt(0).toUpperCase() + text.slice(1) : undefined;
}

/** Returns the error about this path of a field or below: `policies.cache`, `policies.split[0].model`. */
export function problemAt(error: ApiFailure | null, path: string): string | undefined {
  const { message = "" } = error ?? {};
  if (!message.startsWith(path) || !/^[:.[]/.test(message.slice(path.length))) return undefined;
  return problemOf(error, /^[a-z_]+/.exec(path)?.[0] ?? "");
}

/** Returns the error unless it is about one of the fields. */
export function problemBeside(error: ApiFailure | null, fields: readonly string[]): ApiFailure | null {
  return fields.some((field) => problemOf(error, field) !== undefined) ? null : error;
}
