// Generates the published JSON schema of headrace.yaml and the reference page, from the schema and the table of
// options.
import * as z from "zod";
import { exampleFile } from "./example.ts";
import { ruleOf, unwrap } from "./field.ts";
import { fileSchema, reloadableKeys } from "./file-schema.ts";
import { options } from "./options.ts";

/**
 * The JSON schema of a text with `${NAME}`. Such a text may stand for a value of any type, because variables are
 * replaced before validation.
 */
const variable = {
  type: "string",
  pattern: "\\$\\{([A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?|(file|vault):[^}]+)\\}",
  description: "A text with an environment variable or a reference to a secret in it.",
} as const;

const scalarTypes = ["string", "number", "integer", "boolean"] as const;

const constraintKeys = ["type", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength"] as const;

/** Returns the JSON Schema (draft 2020-12) of headrace.yaml as people write it, with variables. */
export function configJsonSchema(): z.core.JSONSchema.JSONSchema {
  const schema = z.toJSONSchema(fileSchema, {
    io: "input",
    override: ({ zodSchema, jsonSchema }) => {
      const isScalar = scalarTypes.some((type) => type === jsonSchema.type);
      const isWrapper = unwrap(zodSchema) !== zodSchema;
      if (isWrapper || !isScalar || (jsonSchema.type === "string" && !isConstrained(jsonSchema))) return;
      const constraints: z.core.JSONSchema.BaseSchema = {};
      for (const key of constraintKeys) {
        if (jsonSchema[key] !== undefined) Object.assign(constraints, { [key]: jsonSchema[key] });
        delete jsonSchema[key];
      }
      jsonSchema.anyOf = [constraints, { $ref: "#/$defs/variable" }];
    },
  });
  return { ...schema, title: "headrace.yaml", $defs: { variable } };
}

function isConstrained(jsonSchema: z.core.JSONSchema.BaseSchema): boolean {
  return jsonSchema.enum !== undefined || jsonSchema.pattern !== undefined;
}

/** Returns the reference page, in Markdown. */
export function configReference(): string {
  return `<!-- Generated from src/config; edit it there. -->

# Configuration

Headrace runs without any configuration. Where there is some, a flag of \`headrace serve\` comes before an environment
variable, a variable before \`headrace.yaml\`, and the file before the default. An empty variable counts as unset.

## Options

${table(["Flag", "Variable", "Key in the file", "Default", "Meaning"], optionRows())}

\`headrace pull\` reads \`HF_ENDPOINT\` (a mirror of https://huggingface.co) and \`HF_TOKEN\`.

An address other than a loopback one needs \`--mode production\`, and production needs a public URL. Relative paths
start at the working directory, those in the file at the directory of the file; \`~/\` is the home directory.

## The file

\`headrace.yaml\` in the working directory, or the file that \`--config\` names. \`headrace.schema.json\` beside this page
describes it to editors.

\`\${NAME}\` in a value is replaced by the environment variable, \`\${NAME:-text}\` by \`text\` where the variable is unset or
empty; \`$\${\` stands for a literal \`\${\`. Only the value is replaced, after the YAML is read: a variable cannot add keys.
An unset variable is an error. Between \`{ }\` and \`[ ]\` such a value needs quotes.

\`\${file:PATH}\` is replaced by the content of a file, \`\${vault:MOUNT/data/PATH#FIELD}\` by a field of a secret in Vault.
[Secrets](../secrets.md) shows both, and the variables that they replace.

${reloadableKeys.map((key) => `\`${key}\``).join(", ")} are taken over from a changed file without a restart; a wrong file is
refused and the old configuration stays.

${table(["Key", "Must be", "Default", "Meaning"], keyRows(fileSchema, ""))}

## Example

Every key at once; no section is required.

\`\`\`yaml
${exampleFile.trimEnd()}
\`\`\`
`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(head), line(head.map(() => "---")), ...rows.map(line)].join("\n");
}

const code = (text: string | undefined) => (text === undefined ? "" : `\`${text}\``);

function optionRows(): string[][] {
  return Object.values(options).map(({ flag, env, isSecret, file, rule, defaultText }) => [
    code(flag),
    code(env) + (isSecret ? `, ${code(`${env}_FILE`)}` : ""),
    code(file?.join(".")),
    shownDefault(defaultText),
    rule.doc,
  ]);
}

/** Renders a default. Constants are shown as code; `none` and sentences stay as they are. */
function shownDefault(text: string): string {
  return text === "none" || text.includes(" ") ? text : code(text);
}

/** Returns a table row for each key, depth first: `upstreams[].url`. Keys that two mappings share are listed once. */
function keyRows(schema: z.core.$ZodType, path: string, listed = new Set<object>()): string[][] {
  const inner = unwrap(schema);
  if (inner instanceof z.ZodArray) {
    return unwrap(inner.element) instanceof z.ZodObject ? keyRows(inner.element, `${path}[]`, listed) : [];
  }
  if (!(inner instanceof z.ZodObject) || listed.has(inner.shape)) return [];
  listed.add(inner.shape);
  return Object.entries(inner.shape).flatMap(([key, value]: [string, z.core.$ZodType]) => {
    const name = path === "" ? key : `${path}.${key}`;
    const rule = ruleOf(value);
    return [[code(name), rule?.must ?? "", keyDefault(value, name), rule?.doc ?? ""], ...keyRows(value, name, listed)];
  });
}

function keyDefault(schema: z.core.$ZodType, name: string): string {
  const option = Object.values(options).find((one) => one.file?.join(".") === name);
  if (option !== undefined) return shownDefault(option.defaultText);
  if (unwrap(schema) instanceof z.ZodObject) return "";
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodExactOptional) return "none";
  if (!(schema instanceof z.ZodDefault)) return "required";
  const value = schema.def.defaultValue;
  if (value === null) return "`null`";
  return Array.isArray(value) ? value.map(code).join(", ") || "none" : code(String(value));
}
