// A small checker for the part of JSON Schema that the OpenAPI document uses; an unknown keyword is an error, not a pass.

export type Schema = Readonly<Record<string, unknown>>;

/** An OpenAPI document, as far as answers are held to it, and with what else of an operation is looked at. */
export interface ApiDocument<Operation = unknown> {
  paths: Readonly<
    Record<string, Readonly<Record<string, Operation & { responses: Readonly<Record<string, Schema>> }>>>
  >;
  components: { schemas: Readonly<Record<string, Schema>>; responses: Readonly<Record<string, Schema>> };
}

/** Finds what a `$ref` leads to, such as `#/components/schemas/Error`; throws where there is nothing. */
export function resolverOf({ components }: Pick<ApiDocument, "components">): (reference: string) => Schema {
  return (reference) => {
    const [, kind, name = ""] = /^#\/components\/(schemas|responses)\/([\w.-]+)$/.exec(reference) ?? [];
    const found = components[kind as "schemas" | "responses"]?.[name];
    if (!found) throw new Error(`${reference} leads nowhere`);
    return found;
  };
}

/** What an operation may answer with this status, by media type; undefined where the document does not say. */
export function describedAnswer(
  document: ApiDocument,
  [method, path, status]: readonly [method: string, path: string, status: number],
): Readonly<Record<string, { schema?: Schema }>> | undefined {
  const described = document.paths[path]?.[method.toLowerCase()]?.responses[status];
  const reference = described?.["$ref"];
  const answer = typeof reference === "string" ? resolverOf(document)(reference) : described;
  return answer && ((answer["content"] ?? {}) as Record<string, { schema?: Schema }>);
}

/** Every way in which a body of JSON differs from what the document says of that answer; throws where it says nothing. */
export function answerMismatches(
  document: ApiDocument,
  answer: readonly [method: string, path: string, status: number],
  body: unknown,
): string[] {
  const schema = describedAnswer(document, answer)?.["application/json"]?.schema;
  if (!schema) throw new Error(`${answer.join(" ")} is not described`);
  return mismatches(body, schema, resolverOf(document));
}

/** Keywords that say nothing about a value. */
const annotations = new Set(["description", "title", "example", "examples", "default", "deprecated", "format", "id"]);

/** Every way in which `value` differs from `schema`, as `path: what`. `resolve` finds the target of a `$ref`. */
export function mismatches(
  value: unknown,
  schema: Schema | boolean,
  resolve: (reference: string) => Schema,
  path = "$",
): string[] {
  if (typeof schema === "boolean") return schema ? [] : [`${path}: nothing is allowed here`];
  const problems: string[] = [];
  for (const [keyword, rule] of Object.entries(schema)) {
    if (annotations.has(keyword)) continue;
    const check = keywords[keyword];
    if (!check) throw new Error(`This checker does not know the keyword ${keyword}`);
    problems.push(...check({ value, rule, schema, path, resolve }));
  }
  return problems;
}

interface Check {
  value: unknown;
  rule: unknown;
  schema: Schema;
  path: string;
  resolve: (reference: string) => Schema;
}

const fail = (condition: boolean, path: string, what: string): string[] => (condition ? [`${path}: ${what}`] : []);
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function hasType(value: unknown, type: string): boolean {
  switch (type) {
    case "null":
      return value === null;
    case "array":
      return Array.isArray(value);
    case "object":
      return isObject(value);
    case "integer":
      return Number.isInteger(value);
    default:
      return typeof value === type;
  }
}

const keywords: Readonly<Record<string, (check: Check) => string[]>> = {
  $ref: ({ value, rule, path, resolve }) => mismatches(value, resolve(String(rule)), resolve, path),
  type: ({ value, rule, path }) => {
    const types = ([] as string[]).concat(rule as string | string[]);
    return fail(!types.some((type) => hasType(value, type)), path, `is not ${types.join(" or ")}`);
  },
  const: ({ value, rule, path }) => fail(value !== rule, path, `is not ${JSON.stringify(rule)}`),
  enum: ({ value, rule, path }) =>
    fail(!(rule as unknown[]).includes(value), path, `is none of ${JSON.stringify(rule)}`),
  anyOf: ({ value, rule, path, resolve }) => {
    const branches = (rule as Schema[]).map((branch) => mismatches(value, branch, resolve, path));
    return branches.some((branch) => branch.length === 0) ? [] : [`${path}: fits no branch`, ...branches.flat()];
  },
  oneOf: ({ value, rule, path, resolve }) => {
    const fits = (rule as Schema[]).filter((branch) => mismatches(value, branch, resolve, path).length === 0);
    return fail(fits.length !== 1, path, `fits ${fits.length} branches instead of one`);
  },
  not: ({ value, rule, path, resolve }) =>
    fail(mismatches(value, rule as Schema, resolve, path).length === 0, path, "is what it must not be"),
  required: ({ value, rule, path }) =>
    isObject(value)
      ? (rule as string[]).filter((name) => !(name in value)).map((name) => `${path}.${name}: is missing`)
      : [],
  properties: ({ value, rule, path, resolve }) =>
    isObject(value)
      ? Object.entries(rule as Record<string, Schema>).flatMap(([name, schema]) =>
          name in value ? mismatches(value[name], schema, resolve, `${path}.${name}`) : [],
        )
      : [],
  additionalProperties: ({ value, rule, schema, path, resolve }) =>
    isObject(value)
      ? Object.keys(value)
          .filter((name) => !(name in ((schema["properties"] as object | undefined) ?? {})))
          .flatMap((name) => mismatches(value[name], rule as Schema | boolean, resolve, `${path}.${name}`))
      : [],
  propertyNames: ({ value, rule, path, resolve }) =>
    isObject(value) ? Object.keys(value).flatMap((name) => mismatches(name, rule as Schema, resolve, `${path}!`)) : [],
  items: ({ value, rule, path, resolve }) =>
    Array.isArray(value)
      ? value.flatMap((item, index) => mismatches(item, rule as Schema, resolve, `${path}[${index}]`))
      : [],
  minimum: ({ value, rule, path }) => fail(typeof value === "number" && value < Number(rule), path, `is below ${rule}`),
  maximum: ({ value, rule, path }) => fail(typeof value === "number" && value > Number(rule), path, `is above ${rule}`),
  exclusiveMinimum: ({ value, rule, path }) =>
    fail(typeof value === "number" && value <= Number(rule), path, `is not above ${rule}`),
  minLength: ({ value, rule, path }) =>
    fail(typeof value === "string" && value.length < Number(rule), path, `is shorter than ${rule}`),
  maxLength: ({ value, rule, path }) =>
    fail(typeof value === "string" && value.length > Number(rule), path, `is longer than ${rule}`),
  pattern: ({ value, rule, path }) =>
    fail(typeof value === "string" && !new RegExp(String(rule)).test(value), path, `does not match ${rule}`),
  minItems: ({ value, rule, path }) =>
    fail(Array.isArray(value) && value.length < Number(rule), path, "has too few items"),
  maxItems: ({ value, rule, path }) =>
    fail(Array.isArray(value) && value.length > Number(rule), path, "has too many items"),
};
