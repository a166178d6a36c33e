// Converts JSON schemas of answers and tools to the forms that OpenAI and Anthropic accept.

type Json = Readonly<Record<string, unknown>>;

const [byName, listed, single] = [["properties", "$defs", "definitions"], ["anyOf", "oneOf", "allOf"], ["items"]];
/** Maximum depth of a schema that is checked. The model server itself refuses deeper schemas. */
const maxDepth = 32;
/** The constraints that Anthropic refuses in the schema of an answer. */
const refused: ReadonlySet<string> = new Set([
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"],
  ...["minLength", "maxLength", "maxItems", "uniqueItems", "minProperties", "maxProperties"],
]);

/** The keywords that OpenAI refuses in a strict schema. */
const looseKeywords = [
  ...["oneOf", "allOf", "not", "if", "then", "else", "patternProperties"],
  ...["dependentRequired", "dependentSchemas"],
];

/**
 * Reports whether OpenAI accepts the schema in strict mode. Each object must be closed and must require all its
 * properties, and no refused keyword may occur.
 */
export function fitsStrict(schema: unknown, depth = 0): boolean {
  if (!isObject(schema) || depth > maxDepth) return true;
  const { properties, required } = schema;
  if (looseKeywords.some((name) => schema[name] !== undefined)) return false;
  if (isOfObject(schema)) {
    const names = isObject(properties) ? Object.keys(properties) : [];
    const all: readonly unknown[] = Array.isArray(required) ? required : [];
    if (schema["additionalProperties"] !== false || !names.every((name) => all.includes(name))) return false;
  }
  return innerSchemas(schema).every((inner) => fitsStrict(inner, depth + 1));
}

/**
 * Returns the schema of an answer in the form that Anthropic accepts. Each object with properties is closed. A
 * constraint that Anthropic refuses moves into the description, where the model can read it.
 */
export function closedSchema(schema: unknown, depth = 0): unknown {
  if (!isObject(schema) || depth > maxDepth) return schema;
  const kept: Record<string, unknown> = {};
  const moved: string[] = [];
  for (const [name, value] of Object.entries(schema)) {
    if (isRefused(name, value)) moved.push(`${name}: ${JSON.stringify(value)}`);
    else kept[name] = innerClosed(name, value, depth);
  }
  // An object whose properties may have any names (a map) stays open. If it were closed, it would always be empty.
  // Anthropic then refuses the schema with an error that explains the reason.
  if (isObject(schema["properties"]) && !isObject(schema["additionalProperties"])) kept["additionalProperties"] = false;
  if (moved.length > 0) {
    const said = typeof kept["description"] === "string" ? `${kept["description"]}\n\n` : "";
    kept["description"] = `${said}(${moved.join(", ")})`;
  }
  return kept;
}

/** Reports whether Anthropic refuses this constraint. Anthropic accepts `minItems` only with the values 0 and 1. */
function isRefused(name: string, value: unknown): boolean {
  return refused.has(name) || (name === "minItems" && value !== 0 && value !== 1);
}

function innerClosed(name: string, value: unknown, depth: number): unknown {
  const closed = (inner: unknown) => closedSchema(inner, depth + 1);
  if (single.includes(name)) return closed(value);
  if (listed.includes(name) && Array.isArray(value)) return value.map(closed);
  if (!byName.includes(name) || !isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, closed(inner)]));
}

function innerSchemas(schema: Json): unknown[] {
  const lists = listed.flatMap((name) => (Array.isArray(schema[name]) ? (schema[name] as unknown[]) : []));
  const named = byName.flatMap((name) => (isObject(schema[name]) ? Object.values(schema[name]) : []));
  return [...single.map((name) => schema[name]), ...lists, ...named];
}

function isOfObject({ type, properties }: Json): boolean {
  return type === "object" || (Array.isArray(type) && type.includes("object")) || isObject(properties);
}

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
