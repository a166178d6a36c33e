// The options of a server of tools, and the members of a request that they become.
import { InvalidArgumentError } from "commander";
import { substitute } from "../../config/substitute.ts";
import { environments } from "../../domain/api-key.ts";
import { toolApprovals, toolSharings } from "../../domain/tools/tool-server.ts";
import type { UpdateToolServerRequest } from "../../wire/tools/tool-servers.ts";
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
    "a header of each request to it; can be given several times",
    (text: string, before: readonly Header[] | "none" | undefined): Header[] | "none" =>
      text === "none" ? text : [...(Array.isArray(before) ? before : []), parseHeader(text)],
  ],
} as const;

export const serverSettings = {
  url: ["--url <url>", "its address over streamable HTTP, such as https://tools.example.com/mcp"],
  node: ["--node <node/server>", "in place of --url: a server that a node has in its own configuration", parsePlace],
  title: ["--title <text>", "its name for people, or none"],
  description: ["--description <text>", "what it is for, or none"],
  header: [
    headerOption.header[0],
    `${headerOption.header[1]}, and stands for all of them anew; none: no more of them`,
    headerOption.header[2],
  ],
  oauth: ["--oauth", "in place of headers: each person connects an account of their own there"],
  noOauth: ["--no-oauth", "no accounts of people any more; those that are connected end"],
  issuer: [
    "--issuer <url>",
    "with --oauth: its authorization server, which may be inside of your network, or none: the one that it names",
  ],
  clientId: ["--client-id <id>", "with --oauth: a client that you registered there, or none"],
  clientSecret: ["--client-secret <secret>", "with --client-id: its secret, or none"],
  scopes: [
    "--scopes <scopes>",
    "with --oauth: what people are asked for, separated by commas, or none",
    orNone(parseNames),
  ],
  approval: [
    "--approval <which>",
    "what is offered of what it says: first (as it was at first, changes wait), each (nothing unapproved) or all",
    toolApprovals,
  ],
  sharing: ["--sharing <who>", "who shares a connection to it: person (nobody with anybody) or all", toolSharings],
  tools: [
    "--tools <names>",
    "tools that are offered at all: names, and beginnings with an asterisk, separated by commas, or all",
    orAll(parseNames),
  ],
  environments: [
    "--environments <names>",
    `whose keys may use it, of ${environments.join(", ")}, or all`,
    orAll(parseEnvironments),
  ],
  accounts: ["--accounts <ids>", "accounts that may use it, separated by commas, or all", orAll(parseNames)],
  timeout: ["--timeout <seconds>", "how long one call may take, such as 60 or 5m", parseSeconds],
  maxResult: ["--max-result <bytes>", "the largest result of a call", parseCount],
  concurrency: ["--concurrency <calls>", "calls at a time", parseCount],
  pricePerCall: ["--price-per-call <usd>", "what one call costs, such as 0.005, or none", orNone(parseUsd)],
  local: ["--local", "nothing that it is asked leaves what you run: keys that never leave may use it"],
  noLocal: ["--no-local", "what it is asked leaves what you run"],
  enabled: ["--enabled", "it may be used"],
  disabled: ["--disabled", "nobody may use it for now"],
} as const;

export const secretsHelp = `\
Other users of this machine can read arguments. In the value of a header and in a
client's secret \${NAME} stands for a variable of your environment, within single quotes,
and - alone for a line of standard input. The server keeps them sealed and shows them to
nobody.`;

type SettingOptions = OptionValues<typeof serverSettings>;
/** Where the values of secrets come from. */
export interface SecretSource {
  context: Pick<CliContext, "env" | "input">;
  options: ConnectionOptions;
}

/** What the options say, null for what is taken away; empty where none was given. */
export async function serverFields(options: SettingOptions, source: SecretSource): Promise<UpdateToolServerRequest> {
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
    timeout_seconds: options.timeout,
    max_result_bytes: options.maxResult,
    max_concurrency: options.concurrency,
    price_per_call: options.pricePerCall,
    enabled: disabled ? false : enabled,
  };
  return withNulls(fields);
}

/** The headers of `--header`; undefined where none was given. */
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
): Promise<UpdateToolServerRequest["oauth"]> {
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

/** Without what was not given; null in place of `none`, which Commander could not say. */
function withNulls(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given.map(([name, value]) => [name, value === "none" ? null : value]));
}

/** Rejects with a CliError that names the option. */
type ReadSecret = (option: string, text: string) => Promise<string>;

function secretReader({ context: { env, input }, options: { apiKeyStdin } }: SecretSource): ReadSecret {
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

/** A list that bounds nothing is none to the API. */
function orAll<Value>(parse: (text: string) => Value): (text: string) => Value | "none" {
  return (text) => (text === "all" ? "none" : parse(text));
}
