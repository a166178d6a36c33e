// What a server says of one tool or prompt, as parts that are read one by one.
import type { ToolDefinition } from "../../api/types.ts";

export interface DefinitionPart {
  label: string;
  /** Empty: it says nothing of it. */
  now: string;
  approved: string;
  /** It is JSON. */
  isCode: boolean;
}

const labels = {
  title: "Title",
  description: "Description",
  inputSchema: "Input schema",
  arguments: "Arguments",
  outputSchema: "Output schema",
  annotations: "Annotations",
  icons: "Icons",
  execution: "Execution",
  _meta: "Metadata for clients (_meta)",
} as const;
const originLabel = "Server address";

/** Returns a part for each member that has a value, or had one. Members that this page does not know have their own name. */
export function partsOf({ definition, approved }: Pick<ToolDefinition, "definition" | "approved">): DefinitionPart[] {
  const known = new Map<string, string>([...Object.entries(labels), ["origin", originLabel]]);
  const others = Object.keys({ ...definition, ...approved }).filter(
    (member) => member !== "name" && !known.has(member),
  );
  const all = [...Object.entries(labels), ...others.map((member) => [member, member]), ["origin", originLabel]];
  return all.flatMap(([member = "", label = ""]) => {
    const [now, before] = [definition[member], approved?.[member]];
    const part = { label, now: textOf(now), approved: textOf(before), isCode: [now, before].some(isStructure) };
    return part.now === "" && part.approved === "" ? [] : [part];
  });
}

function textOf(said: unknown): string {
  if (said === undefined || said === null) return "";
  return typeof said === "string" ? said : JSON.stringify(said, null, 2);
}

function isStructure(said: unknown): boolean {
  return typeof said === "object" && said !== null;
}

/** Hosts of the addresses in what it says now: a model may be led there. */
export function hostsIn(parts: readonly DefinitionPart[]): string[] {
  const without: string[] = [labels.outputSchema, originLabel];
  const text = parts.filter(({ label }) => !without.includes(label)).map(({ now }) => now);
  const found = text.join("\n").matchAll(/https?:\/\/([^\s/"'<>\\?#]+)/gi);
  return [...new Set([...found].map(([, host = ""]) => host.toLowerCase()))].filter((host) => !schemaHosts.has(host));
}

/** JSON Schema names itself by its address. */
const schemaHosts = new Set(["json-schema.org"]);
