// MCP servers and what they say of their tools, as operators see them.
import { z } from "zod";
import { environments } from "../../domain/api-key.ts";
import { toolApprovals, toolProtocolVersions, toolSharings } from "../../domain/tools/mcp-server.ts";
import { mcpServerSources } from "../../domain/tools/mcp-server-store.ts";
import { definitionKinds, definitionStates } from "../../domain/tools/tool-definition.ts";
import { unixSeconds } from "../parts.ts";

// Which characters it may have is said where it is read: a pattern has no words for what is wrong.
const serverName = z.string().min(1).max(64);
const name = serverName.describe("Begins the names that clients see of its tools.");
const title = z.string().min(1).max(128);
const description = z.string().min(1).max(1_024);
const url = z.string().min(1).max(2_048).describe("Its address over streamable HTTP.");
const node = z
  .strictObject({
    node: z.string().min(1).max(64).describe("Id or name of the node."),
    server: serverName.describe("Name of the server at the node, which offers it."),
  })
  .describe("A server that a node has in its own configuration, in place of `url`.");
const headers = z
  .record(z.string().min(1).max(128), z.string().min(1).max(8_192))
  .describe("Headers of each request to it, the same for everybody. They are kept sealed and not shown again.");
const issuer = z
  .string()
  .min(1)
  .max(2_048)
  .describe(
    "Its authorization server, which may then be inside of your network, and no other is taken. null: the one that the server names.",
  );
const oauth = z
  .strictObject({
    issuer: issuer.nullish(),
    client_id: z
      .string()
      .min(1)
      .max(2_048)
      .nullish()
      .describe("A client that you registered there. null: the gateway describes or registers itself."),
    client_secret: z.string().min(1).max(2_048).nullish().describe("Kept sealed and not shown again."),
    scopes: z
      .array(z.string().min(1).max(200))
      .max(100)
      .nullish()
      .describe("Scopes that people are asked for. null: those that the server asks for."),
  })
  .describe("In place of `headers`: each person connects an account of their own there, by OAuth.");
const local = z
  .boolean()
  .describe(
    "Whether keys with `never_leaves` may use it, as nothing that it is sent goes further. Becomes false where `url` moves to another server, unless it is there as well.",
  );
const environmentList = z.array(z.enum(environments)).min(1).max(environments.length);
const accountList = z.array(z.string().min(1).max(64)).max(1_000);
const toolList = z.array(z.string().min(1).max(256)).max(1_000);
const approval = z
  .enum(toolApprovals)
  .describe(
    "What is offered of what it says: `first`: as it was when it was first seen, changes wait for an operator; `each`: nothing before an operator has approved it; `all`: whatever it says.",
  );
const sharing = z
  .enum(toolSharings)
  .describe("Who shares a connection to it: nobody with anybody else, or all who use it.");
const protocolVersion = z
  .enum(toolProtocolVersions)
  .describe("The only revision of the protocol that is spoken with it; null: the newest that it knows.");
const timeoutSeconds = z.int().min(1).max(3_600).describe("Seconds that one call may take.");
const maxResultBytes = z.int().min(1_024).max(67_108_864).describe("Largest result of a call.");
const maxConcurrency = z.int().min(1).max(10_000).describe("Calls at a time.");
const pricePerCall = z
  .number()
  .min(0)
  .max(1_000)
  .describe("USD for each call that is answered, or that its caller left; null: nothing.");
const environmentsText = "Environments whose keys may use it; null: all.";
const accountsText = "Accounts that may use it; null: all.";
const toolsText = "Names of tools that are offered at all, and beginnings of names with an asterisk; null: all.";

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
    description: "`url` or `node` says where it is. Programs of this machine stand in headrace.yaml alone.",
  });
export type CreateMcpServerRequest = z.infer<typeof createMcpServerRequest>;

export const updateMcpServerRequest = z
  .strictObject({
    url: url.optional().describe("At another host, port or scheme only with `headers`, where it has some."),
    node: node.optional(),
    ...settings,
  })
  .meta({ id: "UpdateMcpServerRequest", description: "What is left out stays as it is; null takes it away." });
export type UpdateMcpServerRequest = z.infer<typeof updateMcpServerRequest>;

export const mcpServerShape = z
  .object({
    object: z.literal("tool_server"),
    name: z.string(),
    title: z.string().nullable(),
    description: z.string().nullable(),
    source: z
      .enum(mcpServerSources)
      .describe("Those of `database` are changed here, those of `file` in headrace.yaml alone."),
    overrides_database: z
      .boolean()
      .describe("Whether one of this name was added here as well, which does not count while the file has the name."),
    place: z.enum(["http", "command", "node"]).describe("Where it is; `command`: a process of this machine."),
    url: z.string().nullable().describe("Null unless it is reached over HTTP."),
    node: z.object({ node: z.string(), server: z.string() }).nullable().describe("Id of the node, and the name there."),
    credentials: z
      .enum(["none", "headers", "person"])
      .describe("The identity by which it is asked: nobody, the same headers for all, or each person."),
    credentials_unreadable: z
      .boolean()
      .describe(
        "Whether they were sealed under a secret that is not accepted any more: it is not used until they are given again.",
      ),
    header_names: z.array(z.string()).describe("Names of its headers; their values are not shown."),
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
      .describe("USD for each call that is answered, or that its caller left; null: nothing."),
    enabled: z.boolean(),
    created_at: unixSeconds.nullable().describe("null: it stands in the file."),
    waiting: z.int().describe("Tools and prompts that wait for approval: they are new, or say something else now."),
  })
  .meta({ id: "McpServer" });
export type McpServerWire = z.output<typeof mcpServerShape>;

export const mcpServerTestRequest = z
  .strictObject({
    name: name.optional().describe("One that there is."),
    url: url.optional().describe("Any server, before it is added."),
    node: node.optional(),
    headers: headers.optional().describe("With `url`: they are sent with this test alone."),
    protocol_version: protocolVersion
      .nullish()
      .describe(
        "The only revision to speak in this test; null: the newest that it knows. Left out: the server's own setting.",
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
      .describe("What went wrong, in words."),
    revision: z.string().nullable().describe("Revision of the protocol, as it was agreed."),
    server: z
      .object({ name: z.string().nullable(), title: z.string().nullable(), version: z.string().nullable() })
      .nullable(),
    instructions: z.string().nullable(),
    capabilities: z.array(z.string()).describe("Names of what it says that it has, such as `tools`."),
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
    output: z.array(z.string()).describe("The last lines that its process wrote to standard error."),
    duration_ms: z.int(),
  })
  .meta({ id: "McpServerTest" });
export type McpServerTestWire = z.output<typeof mcpServerTestShape>;

export const definitionShape = z
  .object({
    object: z.literal("tool_definition"),
    id: z.string().describe("Its kind and its name, such as `tool/search_issues`."),
    server: z.string(),
    kind: z.enum(definitionKinds),
    name: z.string().describe("The server's own name of it."),
    state: z.enum(definitionStates).describe("`changed`: it was approved, and says something else now."),
    digest: z.string().describe("The digest of what it says now, by which it is decided about."),
    definition: z.record(z.string(), z.unknown()).describe("What it says now."),
    approved: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe("What it said when it was approved; null: never, or that was refused since."),
    approved_others: z
      .int()
      .describe("How many other texts of it are approved: a server may describe it to each person in another way."),
    seen_at: z.int().describe("Unix seconds."),
    decided_at: z.int().nullable(),
    decided_by: z.string().nullable().describe("Null where nobody decided: it was there at first."),
  })
  .meta({ id: "ToolDefinition" });
export type DefinitionWire = z.output<typeof definitionShape>;

export const decideDefinitionRequest = z
  .strictObject({
    kind: z.enum(definitionKinds).optional().describe("Left out: `tool`."),
    name: z.string().min(1).max(256),
    // Any other than that of what is said now is told so.
    digest: z.string().min(1).max(64),
    decision: z.enum(["approved", "refused"]),
  })
  .meta({ id: "DecideToolDefinition" });
