// Reads the MCP servers that a Responses request names (`tools: [{type: "mcp"}]`). The gateway runs the tools of these
// servers.
import { fieldError } from "../../../../base/errors.ts";
import { isObject, type Json, objectsOf, textOf } from "../json.ts";

/** Selects tools by name, and by whether they are read-only. If a member is undefined, it matches every tool. */
export interface ToolFilter {
  readonly names: ReadonlySet<string> | undefined;
  readonly readOnly: boolean | undefined;
}

export interface AskedServer {
  readonly label: string;
  /**
   * Address of the server, or the name of the vendor's connector. Undefined if the gateway's configuration defines the
   * server.
   */
  readonly url: string | undefined;
  /** The tools that are allowed. If undefined, all tools are allowed. */
  readonly allowed: ToolFilter | undefined;
  /** The tools whose calls need the client's approval, and the tools whose calls need none. */
  readonly approval:
    | { readonly always: ToolFilter | undefined; readonly never: ToolFilter | undefined }
    | "always"
    | "never";
  /** True if the client sends a credential for this server. */
  readonly hasCredential: boolean;
  /** Path of this server's entry in the request. */
  readonly place: string;
}

/** A tool as its MCP server describes it. */
export interface HostedTool {
  readonly name: string;
  readonly description?: string | undefined;
  readonly inputSchema: Json;
  readonly isReadOnly: boolean;
}

const hostedType = "mcp";
/**
 * Maximum number of servers in one request. It is limited because the tools of all servers are listed at the same time.
 */
const maxServers = 32;

export function namesServers({ tools }: Json): boolean {
  return objectsOf(tools).some(({ type }) => type === hostedType);
}

export function isHosted({ type }: Json): boolean {
  return type === hostedType;
}

/** Returns the servers that a request names. Throws `invalid_request` if an entry is invalid. */
export function askedServers({ tools }: Json): AskedServer[] {
  if (!Array.isArray(tools)) return [];
  const labels = new Set<string>();
  const count = tools.filter((tool) => isObject(tool) && isHosted(tool)).length;
  if (count > maxServers) throw fieldError("tools", `must name at most ${maxServers} servers (got ${count}).`);
  return tools.flatMap((tool, index) => {
    if (!isObject(tool) || !isHosted(tool)) return [];
    const asked = askedServer(tool, `tools[${index}]`);
    if (labels.has(asked.label))
      throw fieldError(`${asked.place}.server_label`, `must be of one server only: \`${asked.label}\` is there twice.`);
    labels.add(asked.label);
    return [asked];
  });
}

const labelForm = /^[A-Za-z][A-Za-z0-9_-]{0,63}$/;

function askedServer(tool: Json, place: string): AskedServer {
  const label = textOf(tool["server_label"]);
  if (label === undefined || !labelForm.test(label)) {
    const rule = "is required: a letter, then at most 63 letters, digits, `_` and `-`.";
    throw fieldError(`${place}.server_label`, rule);
  }
  return {
    ...{ label, place, url: textOf(tool["server_url"]) ?? textOf(tool["connector_id"]) },
    allowed: filterOf(tool["allowed_tools"], `${place}.allowed_tools`),
    approval: approvalOf(tool["require_approval"], `${place}.require_approval`),
    hasCredential: isSet(tool["authorization"]) || hasMembers(tool["headers"]),
  };
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function hasMembers(value: unknown): boolean {
  return isSet(value) && !(isObject(value) && Object.keys(value).length === 0);
}

function filterOf(value: unknown, place: string): ToolFilter | undefined {
  if (value === undefined || value === null) return undefined;
  if (Array.isArray(value)) return { names: namesOf(value, place), readOnly: undefined };
  const { tool_names: names, read_only: readOnly } = isObject(value) ? value : {};
  // If a filter is misspelt, it must not select every tool.
  if (!isSet(names) && !isSet(readOnly))
    throw fieldError(place, "must be a list of names, or an object with `tool_names` or `read_only`.");
  if (isSet(readOnly) && typeof readOnly !== "boolean")
    throw fieldError(`${place}.read_only`, "must be true or false.");
  return {
    names: isSet(names) ? namesOf(names, `${place}.tool_names`) : undefined,
    readOnly: typeof readOnly === "boolean" ? readOnly : undefined,
  };
}

function namesOf(value: unknown, place: string): ReadonlySet<string> {
  if (!Array.isArray(value) || !value.every((name) => typeof name === "string"))
    throw fieldError(place, "must be a list of names of tools.");
  return new Set(value);
}

function approvalOf(value: unknown, place: string): AskedServer["approval"] {
  // If the client does not say otherwise, the API requires approval.
  if (value === undefined || value === null || value === "always") return "always";
  if (value === "never") return "never";
  if (!isObject(value)) throw fieldError(place, "must be `always`, `never`, or an object with either.");
  const of = (name: string) => filterOf(value[name], `${place}.${name}`);
  return { always: of("always"), never: of("never") };
}

/** Reports whether the client allows this tool of the server. Tools that are not allowed are not listed. */
export function isAllowed({ allowed }: AskedServer, tool: HostedTool): boolean {
  return !allowed || fits(allowed, tool);
}

/**
 * Reports whether an earlier list of tools has all tools that this request allows by name. The earlier request may have
 * allowed other tools.
 */
export function hasAllowed({ allowed }: AskedServer, listed: readonly HostedTool[]): boolean {
  const names = new Set(listed.map(({ name }) => name));
  return [...(allowed?.names ?? [])].every((name) => names.has(name));
}

function fits(filter: ToolFilter, { name, isReadOnly }: Pick<HostedTool, "name" | "isReadOnly">): boolean {
  if (filter.names && !filter.names.has(name)) return false;
  return filter.readOnly === undefined || filter.readOnly === isReadOnly;
}

/** Reports whether a call of this tool needs the client's approval. */
export function needsApproval({ approval }: AskedServer, tool: HostedTool): boolean {
  if (approval === "always" || approval === "never") return approval === "always";
  if (approval.always && fits(approval.always, tool)) return true;
  return !(approval.never && fits(approval.never, tool));
}
