// The part of headrace.yaml about MCP servers.
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

/** A text by a rule that the API shares. */
const ruled = (doc: string, most: number, { pattern, must, fix }: TextRule, quiet = false) =>
  field(z.string().min(1).max(most).regex(pattern), { doc, must, fix, ...(quiet && { quiet }) });

const server = field(
  z.strictObject({
    name: ruled("Name, with which the names of its tools begin.", 24, texts.name),
    title: field(z.string().trim().min(1).max(128), {
      doc: "Name for people.",
      must: "a text of 1 to 128 characters",
      fix: "Give a name such as GitHub, or leave it out.",
    }).optional(),
    description: field(z.string().trim().min(1).max(1_024), {
      doc: "What it is for.",
      must: "a text of 1 to 1024 characters",
      fix: "Write a sentence, or leave it out.",
    }).optional(),
    url: field(
      z
        .string()
        .trim()
        .refine((text) => parseHttpUrl(text) !== undefined),
      {
        doc: "Its address over streamable HTTP. Left out: it is started by `command`.",
        must: "a URL that begins with http:// or https:// and has no user, password, query or fragment",
        fix: "Give a URL such as https://tools.example.com/mcp. Where it had a user or password: a credential goes under headers.",
        quiet: true,
      },
    ).optional(),
    command: field(
      z.union([z.string().refine((text) => (splitWords(text) ?? []).length > 0), z.array(z.string().min(1)).min(1)]),
      {
        doc: "Program and arguments, as a line or a list; it speaks over its standard input and output. No shell reads it.",
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
          doc: "Name of the server in the node's own `tools.servers`, which says `share: true` of it.",
          must: "the name of an MCP server",
          fix: "Give a name such as files.",
        }),
      }),
      mapping("In place of `url` and `command`: a server that a node of the network offers."),
    ).optional(),
    env: variables(
      "With `command`: variables that it gets on top of PATH and the like; nothing else is given to it.",
    ).optional(),
    directory: field(z.string().min(1), {
      doc: "With `command`: directory to start it in. Left out: an empty one of its own.",
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
        "With `url`: headers of each request to it, such as `authorization`. Left out: it is asked without a credential.",
      ),
    ).optional(),
    oauth: field(
      z.strictObject({
        issuer: field(z.string().max(2_048).refine(isToolIssuer), {
          doc: "Its authorization server, which may then be inside of your network, and no other is taken. Left out: the one that the server names.",
          ...toolIssuerRule,
        }).optional(),
        client_id: ruled(
          "A client that you registered at its authorization server. Left out: the gateway describes or registers itself there.",
          2_048,
          texts.clientId,
        ).optional(),
        client_secret: ruled(
          `The client's secret, where it has one. Keep it out of the file: \`\${NAME}\` takes it from a variable.`,
          2_048,
          texts.clientSecret,
          true,
        ).optional(),
        scopes: field(
          z.array(ruled("A scope of its authorization server.", 200, texts.scope)),
          list("Scopes that people are asked for. Left out: those that the server asks for.", "scopes"),
        ).optional(),
      }),
      mapping("With `url`, instead of `headers`: each person connects an account of their own there, by OAuth."),
    ).optional(),
    share: said(
      "True if the gateway that this machine has joined as a node may offer it to its clients. Not with `node` or `oauth`.",
      trueOrFalse(),
    ).default(false),
    local: said(
      "True if keys with `never_leaves` may use it, because it sends nothing on to other systems.",
      trueOrFalse(),
    ).default(false),
    environments: field(
      z.array(said("An environment.", oneOf(environments))).min(1),
      list("Environments whose keys may use it. Left out: all.", "live, test and dev, with one entry at least"),
    ).optional(),
    accounts: field(
      z.array(ruled("Id of an account.", 64, texts.account)),
      list("Accounts that may use it. Left out: all.", "ids of accounts"),
    ).optional(),
    tools: field(
      z.array(ruled("Name of a tool, or its beginning with an asterisk.", 256, texts.tool)),
      list("Tools that are offered at all. Left out: all.", "names of tools"),
    ).optional(),
    approval: said(
      "What is offered of what it says: `first`: as it was when it was first seen, changes wait for an operator; `each`: nothing before an operator has approved it; `all`: whatever it says.",
      oneOf(toolApprovals),
    ).default("first"),
    sharing: said(
      "Who shares a connection to it, or a process of it: nobody with anybody else (`person`), or `all` who use it.",
      oneOf(toolSharings),
    ).default("person"),
    protocol_version: said(
      "The only revision of the protocol that is spoken with it. Left out: the newest that it knows.",
      oneOf(toolProtocolVersions),
    ).optional(),
    timeout_seconds: said("How long one call may take.", whole([1, 3_600], defaultSeconds, "seconds")).default(
      defaultSeconds,
    ),
    max_result_bytes: said(
      "Largest result of a call.",
      whole([1_024, 67_108_864], usual.maxResultBytes, "bytes"),
    ).default(usual.maxResultBytes),
    max_concurrency: said("Calls at a time.", whole([1, 10_000], usual.maxConcurrency)).default(usual.maxConcurrency),
    price_per_call: field(z.number().min(0).max(1_000), {
      doc: "USD for each call of a tool, prompt or resource that is answered, be it with the tool's own error, or that its caller left. Left out: nothing.",
      must: "a number from 0 to 1000",
      fix: "Give a price in USD such as 0.01, or leave it out.",
    }).optional(),
    enabled: said("True if it may be used.", trueOrFalse()).default(true),
  }),
  entry("An MCP server.", "name, and url, command or node"),
);

export const tools = field(
  z.strictObject({
    servers: field(z.array(server), list("Servers whose tools clients get by this gateway.", "servers")).default([]),
    record: field(z.enum(["none", "content"]), {
      doc: "What is kept of a call of a tool beside who called which when, how it ended and its bytes: nothing, or what it was called with and what it gave, sealed, for `stored_chats.retention_days`.",
      must: "none or content",
      fix: "Write `record: content` to keep it, or leave it out.",
    }).default("none"),
    sampling_model: field(z.string().min(1).max(256), {
      doc: "The model that a server is given which asks for one (sampling), where it names none that its caller may use. Left out: it is refused.",
      must: "the id of a model, 1 to 256 characters",
      fix: "Give an id that `GET /v1/models` lists, or leave it out.",
    }).optional(),
    search_from: said(
      "With more tools than this, all servers together offer a search in place of their schemas.",
      whole([1, 10_000], 40),
    ).default(40),
  }),
  mapping("Tools for models and agents, over the Model Context Protocol."),
);

type FileTools = z.output<typeof tools>;
type FileServer = FileTools["servers"][number];

/** What of it does not go together. `at` is its member. */
export function mcpServerFault(given: FileServer): { at: keyof FileServer; message: string; fix: string } | undefined {
  const [place, another] = (["url", "command", "node"] as const).filter((member) => given[member] !== undefined);
  if (place === undefined) return { at: "url", message: "is missing", fix: "Give a url, a command, or a node." };
  if (another !== undefined) return { at: another, message: `is there beside ${place}`, fix: "Keep one of them." };
  if (given.share && (place === "node" || given.oauth !== undefined)) {
    const why =
      place === "node"
        ? "of what another node offers"
        : "beside oauth: whose accounts those are, only this machine knows";
    return { at: "share", message: `is true ${why}`, fix: "Leave it out." };
  }
  const fault = toolCredentialsFault(given);
  if (fault || place === "command") return fault;
  const foreign = (["env", "directory"] as const).find((member) => given[member] !== undefined);
  return foreign && { at: foreign, message: "is for servers with a command", fix: "Leave it out." };
}

/** One without a fault, in the names of the code. */
export function mcpServerOf(given: FileServer): McpServer {
  const { name } = given;
  return {
    name,
    title: given.title ?? null,
    description: given.description ?? null,
    place: placeOf(given),
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

function placeOf({ url, node, command, env = {}, directory }: FileServer): ServerLocation {
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
