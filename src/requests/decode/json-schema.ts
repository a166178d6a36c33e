// The JSON Schema that zod writes of a wire shape, without references and unions of unions.

/** The part of JSON Schema (2020-12) that our wire shapes come out as. */
export interface Node {
  $ref?: string;
  $defs?: Record<string, Node>;
  type?: string | string[];
  const?: unknown;
  enum?: unknown[];
  /** In the one alternative of a union that is for every other value of the member which tells the alternatives apart. */
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
/** Keywords that ask for nothing. zod writes a pattern beside each format. */
const annotations = "$schema id title description default examples deprecated format";
const known: ReadonlySet<string> = new Set(`${checked} ${annotations}`.split(" "));

/**
 * References are resolved once; our shapes do not recurse. Throws for a keyword that nobody here checks: what a shape asks
 * for is never let pass without a word.
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

/** The alternatives of each node, as they were asked for before. */
const alternativesOf = new WeakMap<Node, Node[]>();

/** A union of unions as one flat list; a list of types as one node for each. */
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

/** The member that every option has with a value of its own, but for one that may have any other. */
export function tagOf(options: readonly Node[]): string | undefined {
  return Object.keys(options[0]?.properties ?? {}).find((name) =>
    options.every(({ properties }) => properties?.[name]?.const !== undefined || properties?.[name]?.not !== undefined),
  );
}
