// Paths into plain data: where a value stands among mappings and lists.

export type Path = readonly PropertyKey[];

/** `["models", 0, "price"]` as `models[0].price`. */
export function renderPath(path: Path): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += text === "" ? String(part) : `.${String(part)}`;
  }
  return text;
}

/** The value at a path; undefined when there is none. Inherited properties do not count. */
export function valueAt(data: unknown, path: Path): unknown {
  let value = data;
  for (const part of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, part)) return undefined;
    value = Reflect.get(value, part);
  }
  return value;
}
