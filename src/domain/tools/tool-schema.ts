// Converts the JSON schema of a tool's arguments to a form that every model server accepts.

type Json = Readonly<Record<string, unknown>>;

/** Keywords whose value may be null. For other keywords, null is not valid JSON Schema. */
const nullable: ReadonlySet<string> = new Set(["const", "default"]);
/** Keywords whose values contain schemas: by name, as a list, or a single one. */
const [byName, listed, single] = [["properties", "$defs", "definitions"], ["anyOf", "oneOf", "allOf"], ["items"]];
/**
 * Maximum depth down to which a schema is completed. A server that reads deeper schemas reports faults there itself.
 */
const maxDepth = 32;

/**
 * Returns a schema that OpenAI and Anthropic accept. OpenAI requires an object with `properties`, even without
 * arguments, and `items` for every array. Anthropic requires the type. In strict mode both require
 * `additionalProperties: false`, which is added to a schema without named arguments. Returns the same object if nothing
 * changes.
 */
export function toolSchema(parameters: unknown, isStrict = false): Json {
  if (!isObject(parameters)) return isStrict ? strictNothing : nothing;
  const schema = withItems(parameters, 0);
  const { type, properties } = schema;
  const isOfObject = type === "object" || type === undefined || type === null || listsObject(type);
  // Another type is left unchanged, because the server refuses it with its own message.
  if (!isOfObject) return schema;
  const hasNull = Object.entries(schema).some(([name, value]) => value === null && !nullable.has(name));
  const isClosed = !isStrict || isObject(properties) || schema["additionalProperties"] === false;
  if (type === "object" && isObject(properties) && !hasNull && isClosed) return schema;
  const kept = Object.entries(schema).filter(([name, value]) => value !== null || nullable.has(name));
  return {
    ...Object.fromEntries(kept),
    type: "object",
    properties: isObject(properties) ? properties : {},
    ...(isClosed ? {} : { required: [], additionalProperties: false }),
  };
}

const nothing: Json = { type: "object", properties: {} };
const strictNothing: Json = { ...nothing, required: [], additionalProperties: false };

function listsObject(type: unknown): boolean {
  return Array.isArray(type) && type.includes("object");
}

/**
 * Adds `items: {}`, which means any value, to arrays without `items`. Returns the same object if nothing is missing.
 */
function withItems(schema: Json, depth: number): Json {
  if (depth > maxDepth) return schema;
  let changed = schema;
  const put = (name: string, value: unknown) => {
    if (value !== schema[name]) changed = { ...changed, [name]: value };
  };
  for (const name of single) put(name, within(schema[name], depth));
  for (const name of listed) {
    const options = schema[name];
    if (Array.isArray(options)) put(name, mapped(options, depth));
  }
  for (const name of byName) {
    const members = schema[name];
    if (!isObject(members)) continue;
    const values = Object.values(members);
    const filled = mapped(values, depth);
    if (filled !== values) put(name, Object.fromEntries(Object.keys(members).map((key, i) => [key, filled[i]])));
  }
  const { type } = schema;
  const isArray = type === "array" || (Array.isArray(type) && type.includes("array"));
  const hasItems = schema["items"] !== undefined && schema["items"] !== null;
  if (isArray && !hasItems && schema["prefixItems"] === undefined) put("items", {});
  return changed;
}

function within(value: unknown, depth: number): unknown {
  return isObject(value) ? withItems(value, depth + 1) : value;
}

function mapped(values: readonly unknown[], depth: number): readonly unknown[] {
  const filled = values.map((value) => within(value, depth));
  return filled.some((value, i) => value !== values[i]) ? filled : values;
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
