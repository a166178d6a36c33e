// Reads JSON values of requests and answers whose types have not been checked.

export type Json = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the value if it is an object. Otherwise returns an empty object. */
export function objectOf(value: unknown): Json {
  return isObject(value) ? value : {};
}

/** Returns the objects in a list. Returns an empty list for any other value. */
export function objectsOf(value: unknown): readonly Json[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

export function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

/**
 * Returns the arguments of a call as an object, as required by `tool_use.input`. If a model writes invalid JSON or JSON
 * that is no object, its text becomes the member `input`. The tool can then report the error.
 */
export function inputObject(text: string): Json {
  if (text.trim() === "") return {};
  const value = parsed(text);
  return isObject(value) ? value : { input: value ?? text };
}

/** Returns the parsed JSON, or undefined if it is invalid. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
