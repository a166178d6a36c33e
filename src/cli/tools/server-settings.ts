// The options of an MCP server, and the request fields that they become.
import { InvalidArgumentError } from "commander";
import { substitute } from "../../config/substitute.ts";
import { environments } from "../../domain/api-key.ts";
import { toolApprovals, toolProtocolVersions, toolSharings } from "../../domain/tools/mcp-server.ts";
import type { UpdateMcpServerRequest } from "../../wire/tools/mcp-servers.ts";
import type { OptionValues } from "../command.ts";
import { parseCount, parseNames, parseSeconds, parseUsd } from "../keys/key-settings.ts";
import type { ConnectionOptions } from "../login/client.ts";
import { orNone, parseEnvironments } from "../models/model-settings.ts";
import type { CliContext } from "../terminal/context.ts";
import { CliError, exitCodes } from "../terminal/terminal.ts";

interface Header {
  name: string;
  value: string;
}

export const sampleHeader = `'authorization: Bearer \${TOKEN}'`;

export const headerOption = {
  header: [
    "--header <name: value>",
    "a header for each request; repeatable",
    (text: string, before: readonly Header[] | "none" | undefined): Header[] | "none" =>
      text === "none" ? text : [...(Array.isArray(before) ? before : []), parseHeader(text)],
  ],
} as const;

export const serverSettings = {
  url: ["--url <url>", "its URL (streamable HTTP), such as https://tools.example.com/mcp"],
  node: ["--node <node/server>", "a server in the configuration of a node, in place of --url", parsePlace],
  title: ["--title <text>", "display name, or none"],
  description: ["--description <text>", "description, or none"],
  header: [
    headerOption.header[0],
    `${headerOption.header[1]}; replaces the current headers; none removes them`,
    headerOption.header[2],
  ],
  oauth: ["--oauth", "each person connects their own account there, in place of headers"],
  noOauth: ["--no-oauth", "stop using people's own accounts, and disconnect them"],
  issuer: [
    "--issuer <url>",
    "with --oauth: its authorization server, which may be in your network; none: the one that the server names",
  ],
  clientId: ["--client-id <id>", "with --oauth: the client id that you registered there, or none"],
  clientSecret: ["--client-secret <secret>", "with --client-id: its secret, or none"],
  scopes: ["--scopes <scopes>", "with --oauth: scopes to request, separated by commas, or none", orNone(parseNames)],
  approval: [
    "--approval <which>",
    "what to approve by itself: first (the first version; changes wait), each (nothing) or all",
    toolApprovals,
  ],
  sharing: ["--sharing <who>", "who shares a connection: person (one for each person) or all", toolSharings],
  protocolVersion: [
    "--protocol-version <revision>",
    "protocol revision to use; none: the newest that the server knows",
    [...toolProtocolVersions, "none"],
  ],
  tools: [
    "--tools <names>",
    "tools to offer: names or prefixes ending in *, separated by commas, or all",
    orAll(parseNames),
  ],
  environments: [
    "--environments <names>",
    `environments that may use it: ${environments.join(", ")}, or all`,
    orAll(parseEnvironments),
  ],
  accounts: ["--accounts <ids>", "accounts that may use it, separated by commas, or all", orAll(parseNames)],
  timeout: ["--timeout <seconds>", "how long one call may take, such as 60 or 5m", parseSeconds],
  maxResult: ["--max-result <bytes>", "maximum size of a result", parseCount],
  concurrency: ["--concurrency <calls>", "maximum concurrent calls", parseCount],
  pricePerCall: ["--price-per-call <usd>", "price of one call in USD, such as 0.005, or none", orNone(parseUsd)],
  local: ["--local", "a local server: keys with never_leaves may use it"],
  noLocal: ["--no-local", "not a local server"],
  enabled: ["--enabled", "allow its use"],
  disabled: ["--disabled", "disable it for now"],
} as const;

export const secretsHelp = `\
Other users of this machine can read the arguments of a command. For a secret, write
'\${NAME}' in single quotes to use an environment variable, or - to read a line of standard
input. The server stores secrets encrypted and does not show them again.`;

type SettingOptions = OptionValues<typeof serverSettings>;
/** The sources of secret values: environment variables and standard input. */
export interface SecretSource {
  context: Pick<CliContext, "env" | "input">;
  options: ConnectionOptions;
}

/**
 * Returns the request fields that the options set, with null for each setting to clear. The result is empty if no
 * option was given.
 */
export async function serverFields(options: SettingOptions, source: SecretSource): Promise<UpdateMcpServerRequest> {
  const { header, enabled, disabled } = options;
  if (enabled && disabled) throw new CliError("Give --enabled or --disabled, not both.", exitCodes.usage);
  const readSecret = secretReader(source);
  const fields = {
    url: options.url,
    node: options.node,
    title: options.title,
    description: options.description,
    headers: header === "none" ? header : await headersOf(header, readSecret),
    oauth: await oauthOf(options, readSecret),
    local: options.local,
    environments: options.environments,
    accounts: options.accounts,
    tools: options.tools,
    approval: options.approval,
    sharing: options.sharing,
    protocol_version: options.protocolVersion,
    timeout_seconds: options.timeout,
    max_result_bytes: options.maxResult,
    max_concurrency: options.concurrency,
    price_per_call: options.pricePerCall,
    enabled: disabled ? false : enabled,
  };
  return withNulls(fields);
}

/** Returns the headers of `--header`, or undefined if none was given. */
export function givenHeaders(
  header: readonly Header[] | "none" | undefined,
  source: SecretSource,
): Promise<Record<string, string> | undefined> {
  return headersOf(header === "none" ? undefined : header, secretReader(source));
}

async function headersOf(
  given: readonly Header[] | undefined,
  readSecret: ReadSecret,
): Promise<Record<string, string> | undefined> {
  if (given === undefined) return undefined;
  const headers: Record<string, string> = {};
  for (const { name, value } of given) headers[name] = await readSecret(`--header ${name}`, value);
  return headers;
}

async function oauthOf(
  { oauth, issuer, clientId, clientSecret, scopes }: SettingOptions,
  readSecret: ReadSecret,
): Promise<UpdateMcpServerRequest["oauth"]> {
  const secret =
    clientSecret === undefined || clientSecret === "none"
      ? clientSecret
      : await readSecret("--client-secret", clientSecret);
  const said = withNulls({ issuer, client_id: clientId, client_secret: secret, scopes });
  if (oauth !== false) return oauth || Object.keys(said).length > 0 ? said : undefined;
  if (Object.keys(said).length === 0) return null;
  throw new CliError(
    "--no-oauth takes all of it away; leave --issuer, --client-id, --client-secret and --scopes out.",
    exitCodes.usage,
  );
}

/** Drops undefined fields. Replaces `none` by null, because Commander cannot return null. */
function withNulls(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, value === "none" ? null : value]));
}

/** Reads the secret value of an option. Rejects with a CliError that names the option. */
type ReadSecret = (option: string, text: string) => Promise<string>;

export function secretReader({ context: { env, input }, options: { apiKeyStdin } }: SecretSource): ReadSecret {
  let isRead = apiKeyStdin ?? false;
  return async (option, text) => {
    if (text !== "-") {
      const put = substitute(text, env);
      if (put.ok) return put.text;
      throw new CliError(
        `${option} ${put.message}. Set the variable in this shell; a literal \${ is written as $\${.`,
        exitCodes.usage,
      );
    }
    if (isRead) {
      throw new CliError(
        `${option}: standard input gives one secret alone, and gives another one already. Take this one from a variable: '\${NAME}'.`,
        exitCodes.usage,
      );
    }
    isRead = true;
    const line = (await input.readLine()).trim();
    if (line !== "") return line;
    throw new CliError(`${option}: - stands for a line of standard input, and that is empty.`, exitCodes.usage);
  };
}

function parseHeader(text: string): Header {
  const at = text.indexOf(":");
  const [name, value] = [text.slice(0, at).trim().toLowerCase(), text.slice(at + 1).trim()];
  if (at > 0 && name !== "" && value !== "") return { name, value };
  throw new InvalidArgumentError(`Give a name and a value, such as ${sampleHeader}.`);
}

function parsePlace(text: string): { node: string; server: string } {
  const at = text.lastIndexOf("/");
  const [node, server] = [text.slice(0, at), text.slice(at + 1)];
  if (at > 0 && server !== "") return { node, server };
  throw new InvalidArgumentError("Give a node and a server of it, such as studio/files.");
}

/** Parses a list, or returns `none` for `all`: the API represents an unrestricted list as null. */
function orAll<Value>(parse: (text: string) => Value): (text: string) => Value | "none" {
  return (text) => (text === "all" ? "none" : parse(text));
}
