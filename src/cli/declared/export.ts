// `headrace export`: prints the objects of a server as documents for files.

import { z } from "zod";
import { writeYamlDocuments } from "../../config/read-yaml.ts";
import { requestWholeList, understood } from "../login/api-request.ts";
import { serverCommand } from "../login/server-command.ts";
import { operatorNeeds } from "../models/model-records.ts";

const document = z.object({
  kind: z.string(),
  name: z.string(),
  spec: z.record(z.string(), z.unknown()),
  secrets: z.array(z.string()),
});
type Document = z.infer<typeof document>;

export const exportCommand = serverCommand({
  name: "export",
  summary: "print the server's objects as files",
  description: `Print the objects of the server as YAML documents for headrace apply. ${operatorNeeds}`,
  options: {
    kind: ["--kind <kind>", "only objects of this kind, such as model"],
    managedBy: ["--managed-by <name>", "only objects of this set of files"],
    json: ["--json", "print them as the API gives them"],
  },
  examples: ["headrace export > headrace.yaml.d/all.yaml", "headrace export --kind model"],
  help: [
    `Secrets are not printed. Each becomes the reference of an environment variable, such as
\${UPSTREAM_VLLM_API_KEY}, that must be set when the file is applied. Objects that are defined
in headrace.yaml are left out.`,
  ],
  async run({ connect, ask, options, terminal }) {
    const connection = await connect();
    const query = new URLSearchParams({
      ...(options.kind === undefined ? {} : { kind: options.kind }),
      ...(options.managedBy === undefined ? {} : { managed_by: options.managedBy }),
    });
    const raw = await ask((_, signal) =>
      requestWholeList(connection, `/admin/documents?${query}`, "list of documents", signal),
    );
    const show = () => {
      const documents = raw.map((one) => understood(document, one, connection, "list of documents"));
      if (documents.length === 0) return terminal.note("There are no such objects.");
      const variables = new Set<string>();
      terminal.print(writeYamlDocuments(documents.map((one) => written(one, variables))).trimEnd());
    };
    return { json: raw, show };
  },
});

/** Adds the variables of the document's secrets to `variables`. */
function written({ kind, name, spec, secrets }: Document, variables: Set<string>) {
  const variable = (member: string) => {
    const plain = `${kind}_${name}_${member}`.toUpperCase().replace(/[^A-Z0-9]+/g, "_");
    // Names such as `gpu-1` and `gpu.1` give the same variable, which would send the key of one server to the other.
    let own = plain;
    for (let n = 2; variables.has(own); n++) own = `${plain}_${n}`;
    variables.add(own);
    return `\${${own}}`;
  };
  const whole = literal(spec) as Record<string, unknown>;
  for (const path of secrets) {
    // A path such as `headers.x-api-key` has one member inside of another, whose name may contain dots.
    const [, member = "", inner] = /^([^.]*)(?:\.(.*))?$/.exec(path) ?? [];
    whole[member] =
      inner === undefined ? variable(path) : { ...(whole[member] as object | undefined), [inner]: variable(path) };
  }
  return { kind, name: literal(name), spec: whole };
}

/** Escapes every `${` in the value's texts, so that `headrace apply` does not read them as variables. */
function literal(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll("${", () => "$${");
  if (Array.isArray(value)) return value.map(literal);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, literal(member)]));
}
