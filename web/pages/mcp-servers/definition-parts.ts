// A server's description of a tool or prompt, split into parts for review.
import type { ToolDefinition } from "../../api/types.ts";

export interface DefinitionPart {
  label: string;
  /** The current text; empty if the server does not send this part. */
  now: string;
  approved: string;
  /** True if the part is JSON. */
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

/** Returns a part for each member that has or had a value. Members unknown to this page keep their own name. */
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

/** Returns the hosts of addresses in the current texts, because a model may be led to them. */
export function hostsIn(parts: readonly DefinitionPart[]): string[] {
  const without: string[] = [labels.outputSchema, originLabel];
  const text = parts.filter(({ label }) => !without.includes(label)).map(({ now }) => now);
  const found = text.join("\n").matchAll(/https?:\/\/([^\s/"'<>\\?#]+)/gi);
  return [...new Set([...found].map(([, host = ""]) => host.toLowerCase()))].filter((host) => !schemaHosts.has(host));
}

/** Hosts that are not reported. A JSON Schema names its dialect by an address, which no client opens. */
const schemaHosts = new Set(["json-schema.org"]);
