// The arguments of a tool as fields of a form, from its schema, and as they are sent.
import { isObject, type JsonObject } from "../../api/tools.ts";

/** `json`: lists, objects and whatever else is typed as JSON. */
type FieldKind = "text" | "number" | "switch" | "choice" | "json";

export interface ArgumentField {
  name: string;
  kind: FieldKind;
  description: string | undefined;
  isRequired: boolean;
  choices: readonly string[];
  /** What is typed before somebody types. */
  initial: string;
  /** Whether a number has to be whole. */
  isWhole: boolean;
}

/** What is typed, by the names of fields; of a switch `true` or nothing. */
export type Typed = Readonly<Record<string, string>>;

/** With more the form would be none. */
const maxFields = 40;
/** So much stands above a field; the whole of it is in the schema. */
const maxDescriptionLength = 500;

/** Undefined where the schema is none of an object with fields of its own: then all of it is typed as JSON. */
export function fieldsOf(schema: unknown): readonly ArgumentField[] | undefined {
  if (!isObject(schema) || "oneOf" in schema || "anyOf" in schema || "allOf" in schema) return undefined;
  const { properties = {}, required } = schema;
  if (!isObject(properties)) return undefined;
  const names = Object.keys(properties);
  if (names.length > maxFields) return undefined;
  const needed = Array.isArray(required) ? required : [];
  return names.map((name) => fieldOf(name, properties[name], needed.includes(name)));
}

function fieldOf(name: string, schema: unknown, isRequired: boolean): ArgumentField {
  const members = isObject(schema) ? schema : {};
  const { description, default: usual, enum: values } = members;
  const kind = kindOf(members);
  return {
    ...{ name, kind, isRequired, isWhole: members["type"] === "integer" },
    description: typeof description === "string" ? shortened(description) : undefined,
    choices: kind === "choice" && Array.isArray(values) ? values.map(String) : [],
    initial: usual === undefined ? "" : typeof usual === "string" && kind !== "json" ? usual : JSON.stringify(usual),
  };
}

function shortened(text: string): string {
  return text.length > maxDescriptionLength ? `${text.slice(0, maxDescriptionLength)}…` : text;
}

function kindOf({ type, enum: values }: JsonObject): FieldKind {
  if (Array.isArray(values)) return values.every((value) => typeof value === "string") ? "choice" : "json";
  if (type === "string") return "text";
  if (type === "number" || type === "integer") return "number";
  return type === "boolean" ? "switch" : "json";
}

export function initialOf(fields: readonly ArgumentField[]): Typed {
  return Object.fromEntries(fields.map(({ name, initial }) => [name, initial]));
}

/** The arguments, or what is wrong with which field. What is empty and not required is left out. */
export function argumentsOf(
  fields: readonly ArgumentField[],
  typed: Typed,
): { given: JsonObject } | { problems: ReadonlyMap<string, string> } {
  const given: [string, unknown][] = [];
  const problems = new Map<string, string>();
  for (const field of fields) {
    const text = typed[field.name] ?? "";
    if (field.kind === "switch") {
      if (text !== "" || field.isRequired) given.push([field.name, text === "true"]);
    } else if (text === "") {
      if (field.isRequired) problems.set(field.name, "This argument is required.");
    } else {
      const read = readValue(field, text);
      if ("problem" in read) problems.set(field.name, read.problem);
      else given.push([field.name, read.value]);
    }
  }
  return problems.size > 0 ? { problems } : { given: Object.fromEntries(given) };
}

function readValue({ kind, isWhole }: ArgumentField, text: string): { value: unknown } | { problem: string } {
  if (kind === "text" || kind === "choice") return { value: text };
  if (kind === "number") {
    const value = Number(text);
    if (!Number.isFinite(value) || text.trim() === "") return { problem: "Enter a number." };
    return isWhole && !Number.isInteger(value) ? { problem: "Enter a whole number." } : { value };
  }
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { problem: 'This is not valid JSON. Put texts in quotes, such as ["one", "two"].' };
  }
}

/** All arguments, typed as one object. */
export function objectOf(text: string): { given: JsonObject } | { problem: string } {
  try {
    const value: unknown = text.trim() === "" ? {} : JSON.parse(text);
    if (isObject(value)) return { given: value };
  } catch {
    // The same is wrong with it as with what is no object.
  }
  return { problem: 'Enter a JSON object, such as {"query": "water"}.' };
}
