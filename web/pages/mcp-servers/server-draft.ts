// An MCP server's settings in the form, and the API request made from them.
import type { CreateMcpServerRequest, McpServer, McpServerTestRequest } from "../../api/types.ts";
import { numberOf, type TypedNumber } from "../../parts/editing/typed-number.ts";
import { allEnvironments } from "../../parts/words/environments.ts";

export interface TypedHeader {
  key: number;
  name: string;
  value: string;
}

export interface ServerDraft {
  name: string;
  title: string;
  description: string;
  place: "http" | "node";
  url: string;
  node: string;
  nodeServer: string;
  credentials: McpServer["credentials"];
  /** The headers to send to the server; null keeps the stored headers. */
  headers: readonly TypedHeader[] | null;
  /** The OAuth issuer; empty means the issuer that the MCP server names. */
  issuer: string;
  clientId: string;
  /** A new OAuth client secret; empty keeps the stored secret, if any. */
  clientSecret: string;
  scopes: readonly string[];
  environments: readonly string[];
  /** The accounts that may use the server; empty means all accounts. */
  accounts: readonly string[];
  tools: readonly string[];
  approval: McpServer["approval"];
  /** The MCP protocol version; empty means the newest version that the server supports. */
  protocolVersion: McpServer["protocol_version"] | "";
  isLocal: boolean;
  isShared: boolean;
  timeoutSeconds: TypedNumber;
  maxResultBytes: TypedNumber;
  maxConcurrency: TypedNumber;
  price: TypedNumber;
}

export const newHeader = (key: number): TypedHeader => ({ key, name: key === 0 ? "authorization" : "", value: "" });

export const newServer: ServerDraft = {
  ...{ name: "", title: "", description: "" },
  ...{ place: "http", url: "", node: "", nodeServer: "" },
  ...{ credentials: "none", headers: [newHeader(0)], issuer: "", clientId: "", clientSecret: "", scopes: [] },
  ...{ environments: allEnvironments, accounts: [], tools: [], approval: "first", isLocal: false, isShared: false },
  protocolVersion: "",
  ...{ timeoutSeconds: 60, maxResultBytes: 4_194_304, maxConcurrency: 32, price: "" },
};

export function draftOf(server: McpServer): ServerDraft {
  const {
    name,
    title,
    description,
    place,
    url,
    node,
    credentials,
    oauth,
    credentials_unreadable: isUnreadable,
  } = server;
  return {
    ...{ name, title: title ?? "", description: description ?? "" },
    ...{ place: place === "node" ? "node" : "http", url: url ?? "" },
    ...{ node: node?.node ?? "", nodeServer: node?.server ?? "" },
    ...{ credentials, headers: credentials === "headers" && !isUnreadable ? null : [newHeader(0)] },
    ...{ issuer: oauth?.issuer ?? "", clientId: oauth?.client_id ?? "", clientSecret: "", scopes: oauth?.scopes ?? [] },
    environments: server.environments ?? allEnvironments,
    ...{ accounts: server.accounts ?? [], tools: server.tools ?? [] },
    ...{ approval: server.approval, isLocal: server.local, isShared: server.sharing === "all" },
    protocolVersion: server.protocol_version ?? "",
    ...{ timeoutSeconds: server.timeout_seconds, maxResultBytes: server.max_result_bytes },
    ...{ maxConcurrency: server.max_concurrency, price: server.price_per_call ?? "" },
  };
}

type ServerLocation = Pick<ServerDraft, "place" | "url" | "node" | "nodeServer">;

/**
 * Returns the changes that move the draft to another location. If the origin or the node changes, `isLocal` is cleared,
 * because it was declared for the old server only.
 */
export function placedAt(draft: ServerDraft, place: Partial<ServerLocation>): Partial<ServerDraft> {
  return originOf({ ...draft, ...place }) === originOf(draft) ? place : { ...place, isLocal: false };
}

function originOf({ place, url, node }: ServerLocation): string {
  if (place === "node") return `node ${node}`;
  return URL.parse(url)?.origin ?? url;
}

/** The API's names of the fields, in the order of the form. */
export const fields = [
  "url",
  "node",
  "headers",
  "oauth",
  "name",
  "title",
  "description",
  "environments",
  "accounts",
  "local",
  "approval",
  "tools",
  "price_per_call",
  "timeout_seconds",
  "max_concurrency",
  "max_result_bytes",
  "protocol_version",
  "sharing",
] as const;

export type Field = (typeof fields)[number];

const namePattern = /^[a-z0-9](?:[a-z0-9-]{0,22}[a-z0-9])?$/;

/** Returns the errors that are known before sending. */
export function errorsOf(draft: ServerDraft): Partial<Record<Field, string>> {
  const { place, url, node, nodeServer, credentials, headers, environments } = draft;
  const given = headers?.filter(({ name, value }) => name !== "" || value !== "") ?? [];
  const isHalf = given.some(({ name, value }) => name.trim() === "" || value === "");
  const lacksHeader = headers !== null && (given.length === 0 || isHalf);
  return {
    ...(place === "http" && url.trim() === "" ? { url: "Enter the address." } : {}),
    ...(place === "node" && (node === "" || nodeServer === "")
      ? { node: "Choose the node, and enter the server's name on that node." }
      : {}),
    ...(credentials === "headers" && lacksHeader ? { headers: "Enter a name and a value for each header." } : {}),
    ...(namePattern.test(draft.name)
      ? {}
      : { name: "Use 1 to 24 lower-case letters, digits and hyphens. The name cannot start or end with a hyphen." }),
    ...(environments.length === 0 ? { environments: "Choose at least one environment." } : {}),
    ...(draft.timeoutSeconds === "" ? { timeout_seconds: "Enter 1 to 3600 seconds." } : {}),
    ...(draft.maxConcurrency === "" ? { max_concurrency: "Enter a number from 1 to 10000." } : {}),
    ...(draft.maxResultBytes === "" ? { max_result_bytes: "Enter 1024 to 67108864 bytes." } : {}),
  };
}

type Settings = Omit<CreateMcpServerRequest, "name" | "url" | "node" | "headers" | "oauth">;

function locationFields({ place, url, node, nodeServer }: ServerLocation) {
  return place === "http" ? { url: url.trim() } : { node: { node, server: nodeServer.trim() } };
}

function headersOf({ headers }: ServerDraft): Record<string, string> {
  const given = (headers ?? []).filter(({ name }) => name.trim() !== "");
  return Object.fromEntries(given.map(({ name, value }) => [name.trim(), value.trim()]));
}

/** Returns both kinds of identity, because one replaces the other. Stored headers that are kept are left out. */
function identityOf(draft: ServerDraft) {
  const { credentials, headers, issuer, clientId, clientSecret, scopes } = draft;
  if (credentials === "none") return { headers: null, oauth: null };
  if (credentials === "headers") return { ...(headers === null ? {} : { headers: headersOf(draft) }), oauth: null };
  const oauth = {
    issuer: issuer.trim() === "" ? null : issuer.trim(),
    client_id: clientId.trim() === "" ? null : clientId.trim(),
    ...(clientSecret === "" ? {} : { client_secret: clientSecret }),
    scopes: scopes.length === 0 ? null : [...scopes],
  };
  return { headers: null, oauth };
}

export function settingsOf(draft: ServerDraft): Settings {
  const { title, description, environments, accounts, tools } = draft;
  return {
    ...{ title: title.trim() || null, description: description.replace(/\s+/g, " ").trim() || null },
    environments:
      environments.length === allEnvironments.length ? null : (environments as NonNullable<McpServer["environments"]>),
    accounts: accounts.length === 0 ? null : [...accounts],
    tools: tools.length === 0 ? null : [...tools],
    ...{ approval: draft.approval, local: draft.isLocal, sharing: draft.isShared ? "all" : "person" },
    protocol_version: draft.protocolVersion || null,
    ...{ timeout_seconds: Number(draft.timeoutSeconds), max_result_bytes: Number(draft.maxResultBytes) },
    ...{ max_concurrency: Number(draft.maxConcurrency), price_per_call: numberOf(draft.price) },
  };
}

export function creationOf(draft: ServerDraft): CreateMcpServerRequest {
  return { name: draft.name, ...locationFields(draft), ...identityOf(draft), ...settingsOf(draft) };
}

/** Returns the changes of the server's location and identity since `before`. */
export function movedOf(draft: ServerDraft, before: ServerDraft) {
  const isSame = (now: unknown, then: unknown) => JSON.stringify(now) === JSON.stringify(then);
  return {
    // If the origin changes, the API clears `local`. So the form's value of `local` is sent together with the location.
    ...(isSame(locationFields(draft), locationFields(before))
      ? {}
      : { ...locationFields(draft), local: draft.isLocal }),
    ...(isSame(identityOf(draft), identityOf(before)) ? {} : identityOf(draft)),
  };
}

/** Returns the request that tests the draft before it is saved; `before` is the stored server. */
export function testOf(draft: ServerDraft, before?: ServerDraft): McpServerTestRequest {
  const isStored = before && Object.keys(movedOf(draft, before)).length === 0;
  const revision = draft.protocolVersion || null;
  const isOther = revision !== (before?.protocolVersion || null);
  if (isStored) return { name: draft.name, ...(isOther && { protocol_version: revision }) };
  return {
    ...locationFields(draft),
    ...(revision && { protocol_version: revision }),
    ...(draft.credentials === "headers" ? { headers: headersOf(draft) } : {}),
  };
}

/** Returns an unused name in the server's syntax, made from the MCP server's own name or its host. */
export function suggestedName(text: string, taken: readonly string[]): string {
  const name = text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 21)
    .replace(/-$/, "");
  if (name === "" || !taken.includes(name)) return name;
  for (let next = 2; ; next++) if (!taken.includes(`${name}-${next}`)) return `${name}-${next}`;
}
