// Paths into plain data: each is the list of keys and indexes that leads to a value.

export type Path = readonly PropertyKey[];

/** Renders `["models", 0, "price"]` as `models[0].price`. */
export function renderPath(path: Path): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += text === "" ? String(part) : `.${String(part)}`;
  }
  return text;
}

/** Returns the value at a path; undefined if there is none. Inherited properties are ignored. */
export function valueAt(data: unknown, path: Path): unknown {
  let value = data;
  for (const part of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined;
    value = Reflect.get(value, part);
  }
  return value;
}
