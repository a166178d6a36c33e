// The section `tools` of headrace.yaml: MCP servers.
import * as z from "zod";
import { nanoOfUsd } from "../../base/money.ts";
import { parseHttpUrl } from "../../base/text/http-url.ts";
import { environments } from "../../domain/api-key.ts";
import {
  type McpServer,
  type ServerLocation,
  type ToolCredentials,
  toolApprovals,
  toolProtocolVersions,
  toolSharings,
} from "../../domain/tools/mcp-server.ts";
import { mcpServerDefaults as usual } from "../../domain/tools/mcp-server-store.ts";
import {
  isToolIssuer,
  type TextRule,
  mcpServerTexts as texts,
  toolCredentialsFault,
  toolIssuerRule,
} from "../../domain/tools/server-rules.ts";
import { variables } from "../command-schema.ts";
import { splitWords } from "../command-text.ts";
import { entry, field, list, mapping, oneOf, said, trueOrFalse, whole } from "../field.ts";

const defaultSeconds = usual.timeoutMs / 1_000;

/** Returns the schema of a text. The API checks the text by the same rule. */
const ruled = (doc: string, most: number, { pattern, must, fix }: TextRule, quiet = false) =>
  field(z.string().min(1).max(most).regex(pattern), { doc, must, fix, ...(quiet && { quiet }) });

const server = field(
  z.strictObject({
    name: ruled("Name of the server, and prefix of the names of its tools.", 24, texts.name),
    title: field(z.string().trim().min(1).max(128), {
      doc: "Display name.",
      must: "a text of 1 to 128 characters",
      fix: "Give a name such as GitHub, or leave it out.",
    }).optional(),
    description: field(z.string().trim().min(1).max(1_024), {
      doc: "Purpose of the server.",
      must: "a text of 1 to 1024 characters",
      fix: "Write a sentence, or leave it out.",
    }).optional(),
    url: field(
      z
        .string()
        .trim()
        .refine((text) => parseHttpUrl(text) !== undefined),
      {
        doc: "URL of the server (streamable HTTP), unless `command` or `node` is set.",
        must: "a URL that begins with http:// or https:// and has no user, password, query or fragment",
        fix: "Give a URL such as https://tools.example.com/mcp. Where it had a user or password: a credential goes under headers.",
        quiet: true,
      },
    ).optional(),
    command: field(
      z.union([z.string().refine((text) => (splitWords(text) ?? []).length > 0), z.array(z.string().min(1)).min(1)]),
      {
        doc: "Program and arguments of a server that uses stdio, as a line or a list. The line is not run by a shell.",
        must: "a command line, or a list of its words, with its quotes closed",
        fix: "Write a line such as npx -y @modelcontextprotocol/server-everything.",
        quiet: true,
      },
    ).optional(),
    node: field(
      z.strictObject({
        node: field(z.string().min(1).max(64), {
          doc: "Name or id of the node.",
          must: "the name or the id of a node",
          fix: "Give a name that `headrace nodes` lists.",
        }),
        server: field(z.string().regex(texts.name.pattern), {
          doc: "Name of the server in the node's own `tools.servers`, where it has `share: true`.",
          must: "the name of an MCP server",
          fix: "Give a name such as files.",
        }),
      }),
      mapping("A server that a node shares, instead of `url` and `command`."),
    ).optional(),
    env: variables(
      "With `command`: environment variables, besides basic ones such as PATH. The command inherits no other variables.",
    ).optional(),
    directory: field(z.string().min(1), {
      doc: "With `command`: working directory. Default: an empty directory of its own.",
      must: "a path",
      fix: "Give the path of a directory, or leave it out.",
    }).optional(),
    headers: field(
      z.record(
        z.string().min(1).max(128).regex(texts.headerName.pattern),
        ruled(
          `A header. Keep credentials out of the file: \`\${NAME}\` takes them from a variable.`,
          8_192,
          texts.header,
          true,
        ),
      ),
      mapping(
        "With `url`: headers of each request to the server, such as `authorization`. Default: none, so requests carry no credential.",
      ),
    ).optional(),
    oauth: field(
      z.strictObject({
        issuer: field(z.string().max(2_048).refine(isToolIssuer), {
          doc: "The only authorization server to use. It may be inside your network. Default: the one that the MCP server names.",
          ...toolIssuerRule,
        }).optional(),
        client_id: ruled(
          "Id of a client that you registered at the authorization server. Default: the gateway identifies itself by a metadata document, or registers itself.",
          2_048,
          texts.clientId,
        ).optional(),
        client_secret: ruled(
          `The client's secret, if it has one. Keep it out of the file: \`\${NAME}\` takes it from a variable.`,
          2_048,
          texts.clientSecret,
          true,
        ).optional(),
        scopes: field(
          z.array(ruled("A scope of the authorization server.", 200, texts.scope)),
          list("Scopes that the gateway requests. Default: the scopes that the MCP server asks for.", "scopes"),
        ).optional(),
      }),
      mapping("With `url`, instead of `headers`: each person connects their own account at the server by OAuth."),
    ).optional(),
    share: said(
      "True if this machine, as a node, shares the server with the gateway that it joined. Not with `node` or `oauth`.",
      trueOrFalse(),
    ).default(false),
    local: said(
      "True if the server sends nothing on to other systems, so keys with `never_leaves` may use it.",
      trueOrFalse(),
    ).default(false),
    environments: field(
      z.array(said("An environment.", oneOf(environments))).min(1),
      list("Environments whose keys may use the server. Default: all.", "live, test and dev, with one entry at least"),
    ).optional(),
    accounts: field(
      z.array(ruled("Id of an account.", 64, texts.account)),
      list("Accounts that may use the server. Default: all.", "ids of accounts"),
    ).optional(),
    tools: field(
      z.array(ruled("Name of a tool, or a prefix ending in `*`.", 256, texts.tool)),
      list("Tools that clients may see. Default: all.", "names of tools"),
    ).optional(),
    approval: said(
      "Approval of the server's tools and texts: with `first`, the first version is offered and changes wait for an operator; with `each`, an operator must approve everything first; with `all`, everything is offered.",
      oneOf(toolApprovals),
    ).default("first"),
    sharing: said(
      "Sharing of a connection or process: one for each `person`, or one for `all`.",
      oneOf(toolSharings),
    ).default("person"),
    protocol_version: said(
      "The only protocol revision to use with the server. Default: the newest that both sides support.",
      oneOf(toolProtocolVersions),
    ).optional(),
    timeout_seconds: said("Maximum duration of one call.", whole([1, 3_600], defaultSeconds, "seconds")).default(
      defaultSeconds,
    ),
    max_result_bytes: said(
      "Maximum size of a result in bytes.",
      whole([1_024, 67_108_864], usual.maxResultBytes, "bytes"),
    ).default(usual.maxResultBytes),
    max_concurrency: said("Maximum number of concurrent calls.", whole([1, 10_000], usual.maxConcurrency)).default(
      usual.maxConcurrency,
    ),
    price_per_call: field(z.number().min(0).max(1_000), {
      doc: "Price in USD of each call of a tool, prompt or resource that is answered, also with the tool's own error, or that the client cancelled. Default: none.",
      must: "a number from 0 to 1000",
      fix: "Give a price in USD such as 0.01, or leave it out.",
    }).optional(),
    enabled: said("True if clients may use the server.", trueOrFalse()).default(true),
  }),
  entry("An MCP server.", "name, and url, command or node"),
);

export const tools = field(
  z.strictObject({
    servers: field(z.array(server), list("MCP servers that clients reach through the gateway.", "servers")).default([]),
    record: field(z.enum(["none", "content"]), {
      doc: "Whether the arguments and results of calls are stored: `none`, or `content`, encrypted, for `stored_chats.retention_days`. Caller, tool, time, outcome and bytes are always recorded.",
      must: "none or content",
      fix: "Write `record: content` to keep it, or leave it out.",
    }).default("none"),
    sampling_model: field(z.string().min(1).max(256), {
      doc: "Model for sampling requests of MCP servers that name no model that the caller may use. Default: such requests are refused.",
      must: "the id of a model, 1 to 256 characters",
      fix: "Give an id that `GET /v1/models` lists, or leave it out.",
    }).optional(),
    search_from: said(
      "Number of tools above which `/mcp` offers a search instead of all schemas.",
      whole([1, 10_000], 40),
    ).default(40),
  }),
  mapping("MCP servers, whose tools models and agents use."),
);

type FileTools = z.output<typeof tools>;
type FileServer = FileTools["servers"][number];

/** Returns the first contradiction between an MCP server's members. `at` is the member to report. */
export function mcpServerFault(given: FileServer): { at: keyof FileServer; message: string; fix: string } | undefined {
  const [chosen, another] = (["url", "command", "node"] as const).filter((member) => given[member] !== undefined);
  if (chosen === undefined) return { at: "url", message: "is missing", fix: "Give a url, a command, or a node." };
  if (another !== undefined)
    return { at: another, message: `cannot be set together with ${chosen}`, fix: "Keep one of them." };
  if (given.share && (chosen === "node" || given.oauth !== undefined)) {
    const why =
      chosen === "node"
        ? "for a server that another node shares"
        : "with oauth, because only this machine knows the people's accounts";
    return { at: "share", message: `cannot be true ${why}`, fix: "Leave it out." };
  }
  const fault = toolCredentialsFault(given);
  if (fault || chosen === "command") return fault;
  const foreign = (["env", "directory"] as const).find((member) => given[member] !== undefined);
  return foreign && { at: foreign, message: "is for servers with a command", fix: "Leave it out." };
}

/** Converts a valid server entry to the form that the code uses. */
export function mcpServerOf(given: FileServer): McpServer {
  const { name } = given;
  return {
    name,
    title: given.title ?? null,
    description: given.description ?? null,
    place: locationOf(given),
    credentials: credentialsOf(given),
    local: given.local,
    environments: given.environments ?? null,
    accounts: given.accounts ?? null,
    tools: given.tools ?? null,
    approval: given.approval,
    sharing: given.sharing,
    protocolVersion: given.protocol_version ?? null,
    timeoutMs: given.timeout_seconds * 1_000,
    maxResultBytes: given.max_result_bytes,
    maxConcurrency: given.max_concurrency,
    nanoUsdPerCall: given.price_per_call === undefined ? null : nanoOfUsd(given.price_per_call),
    enabled: given.enabled,
    isShared: given.share,
    isDeclared: true,
  };
}

function locationOf({ url, node, command, env = {}, directory }: FileServer): ServerLocation {
  if (url !== undefined) return { kind: "http", url };
  if (node) return { kind: "node", nodeId: node.node, server: node.server };
  const words = typeof command === "string" ? (splitWords(command) ?? []) : (command ?? []);
  const [program = "", ...rest] = words;
  return { kind: "command", command: [program, ...rest], env, directory: directory ?? null };
}

function credentialsOf({ headers, oauth }: FileServer): ToolCredentials {
  if (oauth) {
    const { issuer = null, client_id: clientId = null, client_secret: clientSecret = null, scopes = null } = oauth;
    return { kind: "person", issuer, clientId, clientSecret, scopes };
  }
  return headers ? { kind: "headers", headers } : { kind: "none" };
}
