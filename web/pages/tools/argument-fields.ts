// Builds form fields from a tool's input schema, and arguments from the fields.
import { isObject, type JsonObject } from "../../api/tools.ts";

/** `json` is for lists, objects and everything else that is typed as JSON. */
type FieldKind = "text" | "number" | "switch" | "choice" | "json";

export interface ArgumentField {
  name: string;
  kind: FieldKind;
  description: string | undefined;
  isRequired: boolean;
  choices: readonly string[];
  /** The text with which the field starts. */
  initial: string;
  /** True if a number must be an integer. */
  isWhole: boolean;
}

/** The typed texts by field name; a switch is `true` or empty. */
export type Typed = Readonly<Record<string, string>>;

/** Maximum number of fields of a form. A tool with more properties gets one JSON field instead. */
const maxFields = 40;
/** Maximum number of characters of a description above a field; the schema has the full text. */
const maxDescriptionLength = 500;

/** Returns undefined if the schema is not an object with named properties; all arguments are then typed as JSON. */
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

/** Returns the arguments, or the errors by field. Empty optional fields are left out. */
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

/** Parses all arguments from one JSON object. */
export function objectOf(text: string): { given: JsonObject } | { problem: string } {
  try {
    const value: unknown = text.trim() === "" ? {} : JSON.parse(text);
    if (isObject(value)) return { given: value };
  } catch {
    // Invalid JSON gets the same message as JSON that is not an object.
  }
  return { problem: 'Enter a JSON object, such as {"query": "water"}.' };
}
