// Writes the reference files that come from code; with --check only says which are out of date.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { compile, type JSONSchema } from "json-schema-to-typescript";
import packageJson from "../package.json" with { type: "json" };
import { engineErrorCodes, errorCodes } from "../src/base/errors.ts";
import { longLivedKinds } from "../src/base/long-lived.ts";
import { clients } from "../src/cli/connect/clients.ts";
import { configurationOf } from "../src/cli/connect/configuration.ts";
import { configJsonSchema, configReference } from "../src/config/config.ts";
import { amountLabel, amounts } from "../src/domain/limits/amounts.ts";
import { openApiDocument } from "../src/http/reference/openapi.ts";
import { createRoutes } from "../src/http/routes.ts";
import { errorTable } from "../src/wire/errors.ts";
import { hardeningPage, readTests } from "./hardening.ts";
import { untriedLongLived } from "./house/owed.ts";
import { longLivedPage } from "./long-lived.ts";
import { surfaceFile, surfaceText } from "./surface/surface.ts";
import { whoSeesPage } from "./who-sees.ts";

const root = join(import.meta.dir, "..");
const json = (value: unknown) => `${JSON.stringify(value, null, 2)}\n`;

const routes = routeTable();
const document = openApiDocument(routes, packageJson.version);

const tests = readTests(root);
const hardening = hardeningPage(readFileSync(join(root, "tests/hardening.md"), "utf8"), tests);
const longLived = longLivedPage(longLivedKinds, tests, untriedLongLived);

const surface = await surfaceText(root, routes);
const linesOf = (title: string) =>
  surface.split(`# ${title}\n`)[1]?.split("\n\n")[0]?.split("\n").filter(Boolean) ?? [];
const whoSees = whoSeesPage({
  routes,
  pages: linesOf("pages of the dashboard"),
  commands: [...new Set(linesOf("commands").map((line) => line.split(" ")[1] ?? ""))],
});

const files: Record<string, string> = {
  "docs/reference/openapi.json": json(document),
  "web/api/types.ts": await apiTypes(),
  "web/api/limit-amounts.ts": limitAmounts(),
  "web/api/agent-clients.ts": agentClients(),
  "docs/reference/headrace.schema.json": json(configJsonSchema()),
  "docs/reference/configuration.md": configReference(),
  "docs/reference/errors.md": errorsPage(),
  "docs/reference/hardening.md": hardening.page,
  "docs/reference/long-lived.md": longLived.page,
  "docs/reference/who-sees-what.md": whoSees.page,
  [surfaceFile]: surface,
};

/** The table describes itself; its handlers, and so what they need, are never reached here. */
function routeTable() {
  const unreached = new Proxy({}, { get: () => undefined });
  return createRoutes(unreached as Parameters<typeof createRoutes>[0]);
}

/** The shapes that the dashboard imports, and those that they refer to. */
async function apiTypes(): Promise<string> {
  const { schemas } = document.components;
  const definitions = JSON.parse(JSON.stringify(schemas).replaceAll("#/components/schemas/", "#/$defs/"));
  const properties = Object.fromEntries(shapesOfPages().map((name) => [name, { $ref: `#/$defs/${name}` }]));
  const $defs = Object.fromEntries(
    [...reachable(Object.keys(properties), definitions)].map((name) => [name, definitions[name]]),
  );
  const schema: JSONSchema = { $defs, type: "object", properties, additionalProperties: false };
  const banner =
    "// Shapes of the HTTP API, written by scripts/generate.ts from the OpenAPI document: not to be edited.";
  return compile(schema, "Shapes", {
    bannerComment: banner,
    additionalProperties: false,
    ignoreMinAndMaxItems: true,
    style: { printWidth: 120 },
  });
}

/** Returns the names that the modules of the dashboard import from the file of types. */
function shapesOfPages(): string[] {
  const modules = [...new Bun.Glob("**/*.{ts,tsx}").scanSync(join(root, "web"))].sort();
  const names = modules.flatMap((path) =>
    [
      ...readFileSync(join(root, "web", path), "utf8").matchAll(/\{([^{}]*)\} from "[./]+(?:api\/)?types\.ts"/g),
    ].flatMap(([, list = ""]) =>
      list.split(",").map((name) =>
        name
          .replace(/^\s*type /, "")
          .replace(/ as .*/, "")
          .trim(),
      ),
    ),
  );
  return [...new Set(names)].filter((name) => name !== "").sort();
}

/** Returns the names with all that they refer to, directly or not. */
function reachable(names: readonly string[], definitions: Readonly<Record<string, unknown>>): ReadonlySet<string> {
  const found = new Set(names);
  for (const name of found) {
    const text = JSON.stringify(definitions[name] ?? {});
    for (const [, other = ""] of text.matchAll(/"#\/\$defs\/([^"]+)"/g)) found.add(other);
  }
  return found;
}

/** What forms and tables of the dashboard have to know of each. */
function limitAmounts(): string {
  const rows = amounts.map((amount) => {
    const { wire, unit, period, least, most, account, key } = amount;
    return `  ${JSON.stringify({ wire, label: amountLabel(amount), unit, period, least, most, account, key })},`;
  });
  return `// The amounts of limits, written by scripts/generate.ts from src/domain/limits/amounts.ts: not to be edited.
export const limitAmounts = [
${rows.join("\n")}
] as const;

export type LimitAmount = (typeof limitAmounts)[number];
`;
}

/** What `headrace connect` tells of each client, with names in braces for what only the page knows. */
function agentClients(): string {
  const target = { baseUrl: "{root_url}/v1", model: "{model}", key: "{key}", context: undefined };
  const rows = clients.map(({ id, name, file, environment, start }) => {
    const path = file ? ["~", ...file.folder, file.names[0]].join("/") : null;
    const text = file ? configurationOf(file, target).trimEnd() : null;
    return `  ${JSON.stringify({ id, name, file: path, text, environment: Object.entries(environment(target)), start })},`;
  });
  return `// The settings with which clients use this server, written by scripts/generate.ts from src/cli/connect/clients.ts: not to be edited.

export interface AgentClient {
  id: string;
  name: string;
  /** The path of the client's configuration file. null: the client reads only variables. */
  file: string | null;
  text: string | null;
  environment: readonly (readonly [name: string, value: string])[];
  start: string;
}

/** In braces: \`root_url\`, the address without \`/v1\`; \`model\`; \`key\`. In \`text\` they stand within the quotes of a string. */
export const agentClients: readonly AgentClient[] = [
${rows.join("\n")}
];
`;
}

function errorsPage(): string {
  const rows = errorCodes.map((code) => {
    const { status, type, when } = errorTable[code];
    return `| ${status} | \`${code}\` | \`${type}\` | ${when} |`;
  });
  const codes = engineErrorCodes.map((code) => `\`${code}\``).join(", ");
  return `# Errors

Every error of the API has this body and the header \`x-request-id\`, which finds the request in the log:

\`\`\`json
{ "error": { "message": "temperature: must be a number from 0 to 2 (got 3).", "type": "invalid_request_error", "param": "temperature", "code": "invalid_request" } }
\`\`\`

\`param\` is the path of the wrong field in the request. An error that no field causes has no \`param\`, except where the published schema requires the member: it is \`null\` in the \`error\` event of a Responses stream and in the \`errors\` of a batch. If a model server refuses or fails with a code that clients act upon, the error carries that code: ${codes}.

In an open stream the same object is one \`data:\` event, after which the connection closes without \`[DONE]\`.

| Status | code | type | When |
|---|---|---|---|
${rows.join("\n")}
`;
}

const check = process.argv.includes("--check");
let stale = 0;
for (const [name, text] of Object.entries(files)) {
  const path = join(root, name);
  let current = "";
  try {
    current = readFileSync(path, "utf8");
  } catch {
    // Missing is out of date.
  }
  if (current === text) continue;
  stale++;
  if (check) {
    console.error(`${name} is out of date.`);
    continue;
  }
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
  console.log(`wrote ${name}`);
}
const marked = readFileSync(join(root, ".gitattributes"), "utf8").split("\n");
// A review reads the surface: its diff says what changes for users.
const unmarked = Object.keys(files).filter(
  (name) => name !== surfaceFile && !marked.includes(`${name} linguist-generated`),
);
const faults = [
  ...hardening.faults,
  ...longLived.faults,
  ...whoSees.faults,
  ...unmarked.map((name) => `.gitattributes: has no line "${name} linguist-generated", by which reviews know it.`),
];
for (const fault of faults) console.error(fault);
const isStale = check && stale > 0;
if (isStale) console.error("Bring them up to date with: npm run check -- --write");
if (isStale || faults.length > 0) process.exit(1);
