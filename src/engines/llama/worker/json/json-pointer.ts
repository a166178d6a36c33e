// Resolves references within a JSON document: a JSON Pointer (RFC 6901) as a URI fragment.
import { isObject } from "../request/fields.ts";

/**
 * Returns the value that a reference such as `#/$defs/a` points to. Undefined if the reference is invalid or
 * points to nothing.
 */
export function resolvePointer(root: unknown, reference: string): unknown {
  if (reference !== "#" && !reference.startsWith("#/")) return undefined;
  let target = root;
  for (const part of reference.split("/").slice(1)) {
    const key = unescaped(part);
    if (key === undefined) return undefined;
    if (Array.isArray(target)) target = /^(0|[1-9]\d*)$/.test(key) ? target[Number(key)] : undefined;
    else target = isObject(target) && Object.hasOwn(target, key) ? target[key] : undefined;
  }
  return target;
}

function unescaped(part: string): string | undefined {
  try {
    return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
  } catch {
    return undefined;
  }
}
