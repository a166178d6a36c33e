// JSON of requests and answers, taken apart without believing more of it than was checked.

export type Json = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An empty object where it is none. */
export function objectOf(value: unknown): Json {
  return isObject(value) ? value : {};
}

/** The objects of a list; none where it is no list. */
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
 * The arguments of a call as the object that `tool_use.input` has to be. A model may write no arguments, or what is no JSON
 * or no object: then the object has what it wrote as its only member `input`, for the tool to say what is wrong.
 */
export function inputObject(text: string): Json {
  if (text.trim() === "") return {};
  const value = parsed(text);
  return isObject(value) ? value : { input: value ?? text };
}

/** Undefined where it is no JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
