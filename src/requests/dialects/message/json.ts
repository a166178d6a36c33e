// Reads JSON of requests and answers without trusting unchecked values.

export type Json = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns the value if it is an object, and otherwise an empty object. */
export function objectOf(value: unknown): Json {
  return isObject(value) ? value : {};
}

/** Returns the objects of a list; an empty list for any other value. */
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
 * Returns the arguments of a call as the object that `tool_use.input` must be. If a model writes invalid JSON or no
 * object, its text becomes the member `input`, so that the tool can report the error.
 */
export function inputObject(text: string): Json {
  if (text.trim() === "") return {};
  const value = parsed(text);
  return isObject(value) ? value : { input: value ?? text };
}

/** Returns undefined for invalid JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
