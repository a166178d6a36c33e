// Schemas of MCP servers and their tool definitions, as operators see them.
import { z } from "zod";
import { environments } from "../../domain/api-key.ts";
import { toolApprovals, toolProtocolVersions, toolSharings } from "../../domain/tools/mcp-server.ts";
import { mcpServerSources } from "../../domain/tools/mcp-server-store.ts";
import { definitionKinds, definitionStates } from "../../domain/tools/tool-definition.ts";
import { unixSeconds } from "../parts.ts";

// Only the length is checked here. The code that reads the name checks its characters, because a pattern could not
// explain the error.
const serverName = z.string().min(1).max(64);
const name = serverName.describe("Name of the server. It prefixes the tool names that clients see.");
const title = z.string().min(1).max(128);
const description = z.string().min(1).max(1_024);
const url = z.string().min(1).max(2_048).describe("URL of the server, for streamable HTTP.");
const node = z
  .strictObject({
    node: z.string().min(1).max(64).describe("Id or name of the node."),
    server: serverName.describe("Name of the server at the node."),
  })
  .describe("A server in the configuration of a node. Alternative to `url`.");
const headers = z
  .record(z.string().min(1).max(128), z.string().min(1).max(8_192))
  .describe(
    "Headers of each request to the server, the same for all users. They are stored encrypted and not shown again.",
  );
const issuer = z
  .string()
  .min(1)
  .max(2_048)
  .describe(
    "Issuer of the only authorization server to accept. It may be inside your network. null: the one that the MCP server names.",
  );
const oauth = z
  .strictObject({
    issuer: issuer.nullish(),
    client_id: z
      .string()
      .min(1)
      .max(2_048)
      .nullish()
      .describe(
        "Id of a client that you registered there. null: the gateway uses its client metadata document or registers itself.",
      ),
    client_secret: z.string().min(1).max(2_048).nullish().describe("Stored encrypted and not shown again."),
    scopes: z
      .array(z.string().min(1).max(200))
      .max(100)
      .nullish()
      .describe("Scopes to request from users. null: the scopes that the server requests."),
  })
  .describe("Alternative to `headers`: each user connects their own account at the server, by OAuth.");
const local = z
  .boolean()
  .describe(
    "True if keys with `never_leaves` may use the server, because it sends nothing on to other systems. If `url` changes to another server and this member is omitted, it becomes false.",
  );
const environmentList = z.array(z.enum(environments)).min(1).max(environments.length);
const accountList = z.array(z.string().min(1).max(64)).max(1_000);
const toolList = z.array(z.string().min(1).max(256)).max(1_000);
const approval = z
  .enum(toolApprovals)
  .describe(
    "The tool and prompt definitions that clients get. `first`: the first version seen, while changes wait for an operator. `each`: only definitions that an operator approved. `all`: all definitions.",
  );
const sharing = z
  .enum(toolSharings)
  .describe(
    "Sharing of connections to the server. `person`: a connection for each person. `all`: all users share connections.",
  );
const protocolVersion = z
  .enum(toolProtocolVersions)
  .describe("The only protocol revision to use with the server. null: the newest that it supports.");
const timeoutSeconds = z.int().min(1).max(3_600).describe("Timeout of one call in seconds.");
const maxResultBytes = z.int().min(1_024).max(67_108_864).describe("Maximum size of the result of a call, in bytes.");
const maxConcurrency = z.int().min(1).max(10_000).describe("Maximum number of concurrent calls.");
const pricePerCall = z
  .number()
  .min(0)
  .max(1_000)
  .describe("Price in USD of each call that was answered or that its caller abandoned. null: free.");
const environmentsText = "Environments whose keys may use the server. null: all.";
const accountsText = "Accounts that may use the server. null: all.";
const toolsText = "Names of the tools that are offered, or prefixes ending in `*`. null: all.";

const settings = {
  title: title.nullish(),
  description: description.nullish(),
  headers: headers.nullish(),
  oauth: oauth.nullish(),
  local: local.optional(),
  environments: environmentList.nullish().describe(environmentsText),
  accounts: accountList.nullish().describe(accountsText),
  tools: toolList.nullish().describe(toolsText),
  approval: approval.optional(),
  sharing: sharing.optional(),
  protocol_version: protocolVersion.nullish(),
  timeout_seconds: timeoutSeconds.optional(),
  max_result_bytes: maxResultBytes.optional(),
  max_concurrency: maxConcurrency.optional(),
  price_per_call: pricePerCall.nullish(),
  enabled: z.boolean().optional(),
};

export const createMcpServerRequest = z
  .strictObject({ name, url: url.optional(), node: node.optional(), ...settings })
  .meta({
    id: "CreateMcpServerRequest",
    description: "Needs `url` or `node`. Programs on this machine can only be configured in headrace.yaml.",
  });
export type CreateMcpServerRequest = z.infer<typeof createMcpServerRequest>;

export const updateMcpServerRequest = z
  .strictObject({
    url: url
      .optional()
      .describe("If the host, port or scheme changes and the server has headers, send `headers` as well."),
    node: node.optional(),
    ...settings,
  })
  .meta({ id: "UpdateMcpServerRequest", description: "Omitted members keep their values. null removes a value." });
export type UpdateMcpServerRequest = z.infer<typeof updateMcpServerRequest>;

export const mcpServerShape = z
  .object({
    object: z.literal("tool_server"),
    name: z.string(),
    title: z.string().nullable(),
    description: z.string().nullable(),
    source: z
      .enum(mcpServerSources)
      .describe("Source of the server. `database`: changed by this API. `file`: changed only in headrace.yaml."),
    overrides_database: z
      .boolean()
      .describe(
        "True if a server with this name was also added by this API. It has no effect while the file has the name.",
      ),
    place: z
      .enum(["http", "command", "node"])
      .describe("Location of the server. `command`: a process on this machine."),
    url: z.string().nullable().describe("null unless the server is reached over HTTP."),
    node: z
      .object({ node: z.string(), server: z.string() })
      .nullable()
      .describe("Id of the node, and name of the server there."),
    credentials: z
      .enum(["none", "headers", "person"])
      .describe(
        "Identity of requests to the server: none, the same headers for all users, or each person's own account.",
      ),
    credentials_unreadable: z
      .boolean()
      .describe(
        "True if the headers were encrypted under a secret that is no longer accepted. The server is unavailable until you set them again.",
      ),
    header_names: z.array(z.string()).describe("Names of the headers. Their values are not shown."),
    oauth: z
      .object({
        issuer: issuer.nullable(),
        client_id: z.string().nullable(),
        has_client_secret: z.boolean(),
        scopes: z.array(z.string()).nullable(),
      })
      .nullable(),
    local,
    environments: z.array(z.enum(environments)).nullable().describe(environmentsText),
    accounts: z.array(z.string()).nullable().describe(accountsText),
    tools: z.array(z.string()).nullable().describe(toolsText),
    approval,
    sharing,
    protocol_version: protocolVersion.nullable(),
    timeout_seconds: z.number(),
    max_result_bytes: z.int(),
    max_concurrency: z.int(),
    price_per_call: z
      .number()
      .nullable()
      .describe("Price in USD of each call that was answered or that its caller abandoned. null: free."),
    enabled: z.boolean(),
    created_at: unixSeconds.nullable().describe("null: the server is configured in the file."),
    waiting: z.int().describe("Number of tools and prompts that wait for approval because they are new or changed."),
  })
  .meta({ id: "McpServer" });
export type McpServerWire = z.output<typeof mcpServerShape>;

export const mcpServerTestRequest = z
  .strictObject({
    name: name.optional().describe("Name of an existing server."),
    url: url.optional().describe("URL of a server that is not added yet."),
    node: node.optional(),
    headers: headers.optional().describe("With `url`: headers for this test only."),
    protocol_version: protocolVersion
      .nullish()
      .describe(
        "The only protocol revision to use in this test. null: the newest that the server supports. Default: the server's setting.",
      ),
  })
  .meta({ id: "McpServerTestRequest" });
export type McpServerTestRequest = z.infer<typeof mcpServerTestRequest>;

export const mcpServerTestShape = z
  .object({
    object: z.literal("tool_server.test"),
    ok: z.boolean(),
    error: z
      .object({ code: z.string(), message: z.string(), detail: z.string().nullable() })
      .nullable()
      .describe("Error message."),
    revision: z.string().nullable().describe("Negotiated protocol revision."),
    server: z
      .object({ name: z.string().nullable(), title: z.string().nullable(), version: z.string().nullable() })
      .nullable(),
    instructions: z.string().nullable(),
    capabilities: z.array(z.string()).describe("Capabilities that the server declares, such as `tools`."),
    tools: z.array(
      z.object({
        name: z.string(),
        title: z.string().nullable(),
        description: z.string().nullable(),
        state: z.enum([...definitionStates, "new"]),
      }),
    ),
    prompts: z.int(),
    resources: z.int(),
    output: z.array(z.string()).describe("Last lines that the process wrote to standard error."),
    duration_ms: z.int(),
  })
  .meta({ id: "McpServerTest" });
export type McpServerTestWire = z.output<typeof mcpServerTestShape>;

export const definitionShape = z
  .object({
    object: z.literal("tool_definition"),
    id: z.string().describe("Kind and name, such as `tool/search_issues`."),
    server: z.string(),
    kind: z.enum(definitionKinds),
    name: z.string().describe("Name at the server."),
    state: z.enum(definitionStates).describe("`changed`: an approved definition has changed."),
    digest: z.string().describe("Digest of the current definition. Decisions refer to it."),
    definition: z.record(z.string(), z.unknown()).describe("Current definition."),
    approved: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe("Approved definition. null: it was never approved, or was refused since."),
    approved_others: z
      .int()
      .describe("Number of other approved versions. A server may describe a tool differently to each person."),
    seen_at: z.int().describe("Unix seconds."),
    decided_at: z.int().nullable(),
    decided_by: z.string().nullable().describe("null if nobody decided, because the definition was present at first."),
  })
  .meta({ id: "ToolDefinition" });
export type DefinitionWire = z.output<typeof definitionShape>;

export const decideDefinitionRequest = z
  .strictObject({
    kind: z.enum(definitionKinds).optional().describe("Default: `tool`."),
    name: z.string().min(1).max(256),
    // The digest of the definition that the operator saw. If the current definition has another digest, the request is
    // refused.
    digest: z.string().min(1).max(64),
    decision: z.enum(["approved", "refused"]),
  })
  .meta({ id: "DecideToolDefinition" });
