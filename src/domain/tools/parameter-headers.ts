// Tool arguments that are also sent as headers (`x-mcp-header`, revision 2026-07-28), so that proxies can read them
// without parsing the body.

export interface MirroredParameter {
  /** The header's full name. */
  readonly header: string;
  /** Property names that lead from the arguments to the value. */
  readonly path: readonly string[];
  readonly isNumber: boolean;
}

const mark = "x-mcp-header";
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,100}$/;
const [most, deepest] = [64, 256];
const numbers = new Set<unknown>(["integer", "number"]);
const kinds = new Set<unknown>([...numbers, "string", "boolean"]);
/** Schema keywords that contain data and no schemas, so `x-mcp-header` has no meaning inside. */
const values = new Set(["default", "const", "enum", "examples"]);

/** Caches the result for each schema, so that it is scanned once and not for each call. */
const known = new WeakMap<object, { readonly mirrored: readonly MirroredParameter[] | undefined }>();

/**
 * Returns the arguments that the schema marks with `x-mcp-header`. Returns undefined if a mark is invalid. Clients must
 * then ignore the tool.
 */
export function mirroredParameters(inputSchema: unknown): readonly MirroredParameter[] | undefined {
  if (typeof inputSchema !== "object" || inputSchema === null) return [];
  let found = known.get(inputSchema);
  if (!found) {
    found = { mirrored: findMirrored(inputSchema) };
    known.set(inputSchema, found);
  }
  return found.mirrored;
}

function findMirrored(inputSchema: object): readonly MirroredParameter[] | undefined {
  const found: MirroredParameter[] = [];
  if (!collect(inputSchema, [], 0, found)) return undefined;
  const names = new Set(found.map(({ header }) => header.toLowerCase()));
  return names.size === found.length && found.length <= most ? found : undefined;
}

/**
 * Collects the marked arguments of a schema in `found`. Returns false if a mark is invalid. `path` is null where an
 * argument has no single position, for example inside of arrays.
 */
function collect(schema: unknown, path: readonly string[] | null, depth: number, found: MirroredParameter[]): boolean {
  if (typeof schema !== "object" || schema === null) return true;
  if (depth > deepest) return false;
  const below = (one: unknown, at: readonly string[] | null) => collect(one, at, depth + 1, found);
  if (Array.isArray(schema)) return schema.every((one) => below(one, null));
  const { [mark]: name, type } = schema as Record<string, unknown>;
  if (name !== undefined) {
    const isPlaced = path !== null && depth > 0;
    if (!isPlaced || typeof name !== "string" || !token.test(name) || !kinds.has(type)) return false;
    found.push({ header: `Mcp-Param-${name}`, path, isNumber: numbers.has(type) });
  }
  return Object.entries(schema).every(([key, value]) => {
    if (key === mark || values.has(key)) return true;
    if (key !== "properties" || typeof value !== "object" || value === null) return below(value, null);
    return Object.entries(value).every(([property, one]) => below(one, path && [...path, property]));
  });
}

/** Returns the headers for a call with these arguments. */
export function parameterHeaders(mirrored: readonly MirroredParameter[], args: unknown): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const { header, path } of mirrored) {
    const text = textOf(valueAt(args, path));
    if (text !== undefined) headers[header] = encoded(text);
  }
  return headers;
}

/** Returns how the headers contradict the arguments; undefined if they agree. */
export function parameterFault(
  mirrored: readonly MirroredParameter[],
  args: unknown,
  headers: Pick<Headers, "get">,
): string | undefined {
  for (const { header, path, isNumber } of mirrored) {
    const value = valueAt(args, path);
    const text = textOf(value);
    if (text === undefined) continue;
    const sent = headers.get(header);
    if (sent === null) return `${header} is missing: arguments.${path.join(".")} goes as that header, too.`;
    const headerText = decoded(sent);
    if (headerText === undefined) return `${header} has to be text, or =?base64?…?= around the Base64 of UTF-8.`;
    const isSame =
      isNumber && typeof value === "number" && decimal.test(headerText)
        ? Number(headerText) === value
        : headerText === text;
    if (!isSame) return `${header} says something else than arguments.${path.join(".")}.`;
  }
  return undefined;
}

const decimal = /^-?[0-9]{1,40}(?:\.[0-9]{1,40})?$/;
const plain = /^[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
const [before, after] = ["=?base64?", "?="];

function valueAt(args: unknown, path: readonly string[]): unknown {
  let value = args;
  for (const key of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return String(value);
  const isExact = typeof value === "number" && Number.isFinite(value);
  return isExact && (!Number.isInteger(value) || Number.isSafeInteger(value)) ? String(value) : undefined;
}

function encoded(text: string): string {
  if (plain.test(text) && !(text.startsWith(before) && text.endsWith(after))) return text;
  return before + Buffer.from(text, "utf8").toString("base64") + after;
}

function decoded(sent: string): string | undefined {
  if (!(sent.startsWith(before) && sent.endsWith(after) && sent.length >= before.length + after.length)) return sent;
  const inner = sent.slice(before.length, -after.length);
  const bytes = Buffer.from(inner, "base64");
  const text = bytes.toString("utf8");
  // Text that is encoded in another way could be read in two ways, so it is refused.
  return bytes.toString("base64") === inner && Buffer.from(text, "utf8").equals(bytes) ? text : undefined;
}
