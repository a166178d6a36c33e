// Converts the JSON Schema that zod writes for a wire shape. References are resolved, and unions are flattened.

/** The part of JSON Schema (2020-12) that zod uses for the gateway's wire shapes. */
export interface Node {
  $ref?: string;
  $defs?: Record<string, Node>;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  /**
   * Excludes the known values of the discriminating member. Only set in the alternative of a union that stands for all
   * other values.
   */
  not?: { enum: unknown[] };
  anyOf?: Node[];
  oneOf?: Node[];
  properties?: Record<string, Node>;
  required?: string[];
  additionalProperties?: Node | boolean;
  propertyNames?: Node;
  items?: Node;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
}

const checked =
  "$ref $defs type const enum not anyOf oneOf properties required additionalProperties propertyNames items pattern minimum maximum exclusiveMinimum minLength maxLength minItems maxItems";
/** Keywords that do not restrict a value. zod writes a pattern in addition to each format. */
const annotations = "$schema id title description default examples deprecated format";
const known: ReadonlySet<string> = new Set(`${checked} ${annotations}`.split(" "));

/**
 * Replaces all references by their schemas, which is possible because the wire shapes are not recursive. Throws for an
 * unknown keyword, so that no restriction is ignored.
 */
export function inline(node: Node, root: Node): Node {
  const unknown = Object.keys(node).find((keyword) => !known.has(keyword));
  if (unknown !== undefined)
    throw new Error(`A wire shape asks for "${unknown}", which src/requests/decode does not check.`);
  if (node.$ref) return inline(root.$defs?.[node.$ref.replace("#/$defs/", "")] ?? {}, root);
  const each = (nodes: Node[] | undefined) => nodes?.map((inner) => inline(inner, root));
  const { $defs: _, anyOf, oneOf, properties, items, additionalProperties, ...rest } = node;
  return {
    ...rest,
    ...(anyOf ? { anyOf: each(anyOf) ?? [] } : {}),
    ...(oneOf ? { oneOf: each(oneOf) ?? [] } : {}),
    ...(properties
      ? {
          properties: Object.fromEntries(
            Object.entries(properties).map(([name, inner]) => [name, inline(inner, root)]),
          ),
        }
      : {}),
    ...(items ? { items: inline(items, root) } : {}),
    ...(typeof additionalProperties === "object" ? { additionalProperties: inline(additionalProperties, root) } : {}),
  };
}

/** Caches the alternatives of each node. */
const alternativesOf = new WeakMap<Node, Node[]>();

/**
 * Returns the alternatives of a node. A union of unions becomes one flat list, and a list of types becomes one node for
 * each type.
 */
export function alternatives(node: Node): Node[] {
  let known = alternativesOf.get(node);
  if (!known) {
    const { type } = node;
    const choices =
      node.anyOf ?? node.oneOf ?? (Array.isArray(type) ? type.map((one) => ({ ...node, type: one })) : undefined);
    known = choices ? choices.flatMap(alternatives) : [node];
    alternativesOf.set(node, known);
  }
  return known;
}

/** Returns the member that has a different constant in each option. One option may instead accept all other values. */
export function tagOf(options: readonly Node[]): string | undefined {
  return Object.keys(options[0]?.properties ?? {}).find((name) =>
    options.every(({ properties }) => properties?.[name]?.const !== undefined || properties?.[name]?.not !== undefined),
  );
}
