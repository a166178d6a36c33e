// Attaches documentation to a configuration value: its meaning, requirement and remedy. Errors, the JSON schema and the
// reference use this.
import * as z from "zod";
import type { EntryFault } from "../domain/models/model-entry.ts";

export interface Rule {
  /** The purpose of the value, in full sentences, for the reference page and the JSON schema. */
  doc: string;
  /** The requirement on the value. Continues the words "must be". */
  must: string;
  /** The remedy for a wrong value, as a full sentence. */
  fix: string;
  /** If true, the value may hold a secret, so that no error may show it. */
  quiet?: boolean;
}

export const printablePattern = /^[!-~]+$/;

/** Rules for mappings and lists. */
export const mapping = (doc: string) => ({
  doc,
  must: "a mapping",
  fix: "Write keys and values below it, or leave it out.",
});
export const list = (
  doc: string,
  of: string,
  fix = "Begin each entry with a hyphen; for none, leave the key out.",
) => ({
  doc,
  must: `a list of ${of}`,
  fix,
});
export const entry = (doc: string, keys: string) => ({
  doc,
  must: `a mapping with ${keys}`,
  fix: "Write keys and values below it.",
});

/** A kind of value that several fields share. Each field adds its own `doc`. */
type Kind<Schema extends z.ZodType> = { schema: Schema } & Omit<Rule, "doc">;

/** A whole number within inclusive bounds. `unit` names what the number counts. */
export function whole([least, most]: readonly [number, number], example: number, unit?: string): Kind<z.ZodInt> {
  return {
    schema: z.int().min(least).max(most),
    must: `a whole number${unit === undefined ? "" : ` of ${unit}`} from ${least} to ${most}`,
    fix: `Give a number such as ${example}.`,
  };
}

export function share(): Kind<z.ZodNumber> {
  const fix = "Give a share such as 0.1, or leave it out.";
  return { schema: z.number().min(0).max(1), must: "a number from 0 to 1", fix };
}

export function oneOf<const Word extends string>(words: readonly Word[]): Kind<z.ZodEnum<{ [Each in Word]: Each }>> {
  const must = [words.slice(0, -1).join(", "), words.at(-1)].filter(Boolean).join(" or ");
  return { schema: z.enum(words), must, fix: `Write ${must}.` };
}

export function trueOrFalse(): Kind<z.ZodBoolean> {
  return { schema: z.boolean(), must: "true or false", fix: "Write true or false." };
}

const rules = new WeakMap<z.core.$ZodType, Rule>();

/**
 * Attaches the rule to the schema, which must belong to this field only. Call this before `.optional()`, `.default()`
 * or `.nullable()`. (`.meta()` would copy the schema and double the start-up time.)
 */
export function field<S extends z.ZodType>(schema: S, rule: Rule): S {
  z.globalRegistry.add(schema, { description: rule.doc });
  rules.set(schema, rule);
  return schema;
}

/** Returns the schema of a field whose kind other fields share. `doc` is the field's own documentation. */
export function said<S extends z.ZodType>(doc: string, { schema, ...rule }: Kind<S>): S {
  return field(schema, { doc, ...rule });
}

/** Adds to the remedy (`fix`) that the value may be left out. */
export function orLeftOut<S extends z.ZodType>(kind: Kind<S>): Kind<S> {
  return { ...kind, fix: kind.fix.replace(/\.$/, ", or leave it out.") };
}

/** Returns the schema of a field that may also be `null`, for "no limit". */
export function unlimitable<S extends z.ZodType>(schema: S, rule: Rule): z.ZodNullable<S> {
  return field(schema, { ...rule, must: `${rule.must}, or null for no limit` })
    .nullable()
    .meta({ description: rule.doc });
}

/** Returns the schema without the wrappers that make it optional, nullable or defaulted. */
export function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  let inner = schema;
  while (
    inner instanceof z.ZodOptional ||
    inner instanceof z.ZodExactOptional ||
    inner instanceof z.ZodNullable ||
    inner instanceof z.ZodDefault ||
    inner instanceof z.ZodPrefault
  ) {
    inner = inner.def.innerType;
  }
  return inner;
}

export function ruleOf(schema: z.core.$ZodType): Rule | undefined {
  return rules.get(unwrap(schema));
}

/** Returns the schema of the value at a path; undefined for an unknown path. */
export function schemaAt(root: z.core.$ZodType, path: readonly PropertyKey[]): z.core.$ZodType | undefined {
  let schema: z.core.$ZodType | undefined = unwrap(root);
  for (const part of path) {
    if (schema instanceof z.ZodObject) schema = schema.shape[String(part)];
    else if (schema instanceof z.ZodArray) schema = schema.element;
    else if (schema instanceof z.ZodRecord) schema = schema.valueType;
    else return undefined;
    if (schema === undefined) return undefined;
    schema = unwrap(schema);
  }
  return schema;
}

/**
 * Returns a fault for each entry whose `key` has the same value as in an earlier entry. `section` is the start of the
 * fault's path.
 */
export function duplicateFaults<Key extends string>(
  section: string,
  key: Key,
  entries: readonly Readonly<Record<Key, string>>[],
): EntryFault[] {
  const values = entries.map((entry) => entry[key]);
  return values.flatMap((value, index) => {
    const first = values.indexOf(value);
    if (first === index) return [];
    const message = `is the same as ${section}[${first}].${key}`;
    return [{ path: [section, index, key], message, fix: `Give each entry of ${section} its own ${key}.` }];
  });
}
