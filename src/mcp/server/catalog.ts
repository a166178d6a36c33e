// Catalog of the tools, prompts and resources that a caller may use: merged lists of all servers, and look-up by public
// name.
import type { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { partyOf } from "../../domain/principal.ts";
import {
  AccountMissing,
  type ClientSession,
  type ClientSessions,
  type JsonObject,
} from "../../domain/tools/client-session.ts";
import type { McpServer, McpServers } from "../../domain/tools/mcp-server.ts";
import type { McpServerSlots } from "../../domain/tools/mcp-server-slots.ts";
import { mirroredParameters } from "../../domain/tools/parameter-headers.ts";
import type { DefinitionGuard } from "../../domain/tools/tool-definition.ts";
import type { ToolUses } from "../../domain/tools/tool-use.ts";
import { mayUseServer } from "../../domain/tools/usable-server.ts";
import { accountTool, accountToolName } from "./account-tool.ts";
import type { ClientCall, ClientRequest } from "./client-call.ts";
import { itemOf, publicName, serverOfName } from "./names.ts";
import { invalidParams, RpcError } from "./rpc-error.ts";
import { type ListKind, listKinds, ServerLists } from "./server-lists.ts";
import { mayUseResources, mayUseTool, usableServers } from "./view.ts";

export interface ServerCatalogDeps {
  servers: Pick<McpServers, "all" | "find">;
  links: Pick<ClientSessions, "open">;
  definitions: DefinitionGuard;
  slots: McpServerSlots;
  uses: Pick<ToolUses, "permit">;
  clock: Clock;
  log: Log;
}

/** Milliseconds after which the list of a slow server is left out, so that the lists of other servers do not wait. */
const listPatienceMs = 10_000;

/** An item of a server's list, with the server's own name for it. */
export interface Found {
  readonly server: McpServer;
  readonly item: JsonObject;
  readonly name: string;
  /** Account state, if the item is the `connect_account` tool that replaces the server's tools. */
  readonly account?: AccountMissing | "connected";
}

export class ServerCatalog {
  readonly #deps: ServerCatalogDeps;
  readonly #lists: ServerLists;

  constructor(deps: ServerCatalogDeps) {
    this.#deps = deps;
    this.#lists = new ServerLists(deps.clock);
  }

  /**
   * Rejects before any process is started if the caller has no quota left. If `server` is given, the refusal is
   * recorded under its name.
   */
  async permit(
    { requestId, principal, trace }: ClientRequest,
    method: string,
    name: string | null,
    server?: McpServer,
  ): Promise<void> {
    await this.#deps.uses.permit({ requestId, principal, method, name, ...(server && { server, trace }) });
  }

  async open(server: McpServer, { principal, subscriber }: ClientRequest): Promise<ClientSession> {
    const link = await this.#deps.links.open(server, { principal });
    subscriber?.attach(server.name, link);
    return link;
  }

  /** Returns the servers at the requested address that the principal may use. */
  serversOf(call: Pick<ClientCall, "only" | "principal">): readonly McpServer[] {
    const { only, principal } = call;
    return only === undefined ? usableServers(this.#deps.servers, principal) : [this.requireServer(only, call)];
  }

  /** Returns the server of an address that names one server. A missing and a forbidden server give the same error. */
  requireServer(name: string, { principal }: Pick<ClientCall, "principal">): McpServer {
    const server = this.#deps.servers.find(name);
    if (server && mayUseServer(server, principal)) return server;
    throw new GatewayError("not_found", "There is no such MCP server, or this key may not use it.");
  }

  /**
   * Returns the entries of a kind of all servers, in the order of the server names. `isFresh` is that of
   * `ServerLists.of`.
   */
  async all(kind: ListKind, call: ClientCall, isFresh = false): Promise<Found[]> {
    await this.permit(call, listKinds[kind].method, null);
    const servers = this.serversOf(call);
    if (call.only !== undefined)
      return (await Promise.all(servers.map((server) => this.#of(server, kind, call, isFresh)))).flat();
    const lists = await Promise.all(
      servers.map(async (server) => {
        try {
          return await within(listPatienceMs, this.#of(server, kind, call, isFresh));
        } catch (error) {
          const { message, detail } = error as { message?: string; detail?: string };
          this.#deps.log.warn("mcp_list_failed", { server: server.name, kind, reason: detail ?? message ?? "unknown" });
          return [];
        }
      }),
    );
    return lists.flat();
  }

  /** Finds an item by its public name. Rejects if the name is unknown, or if the principal may not use the item. */
  async find(
    kind: "tools" | "prompts",
    name: unknown,
    call: ClientCall,
    { isNoted = true }: { isNoted?: boolean } = {},
  ): Promise<Found> {
    const what = kind === "tools" ? "tool" : "prompt";
    const unknown = () => new RpcError(invalidParams, `Unknown ${what}: ${String(name).slice(0, 100)}`);
    if (typeof name !== "string") throw new RpcError(invalidParams, "name must be a text.");
    const { only, principal } = call;
    const server = only === undefined ? this.#deps.servers.find(serverOfName(name)) : this.requireServer(only, call);
    if (!server || !mayUseServer(server, principal)) throw unknown();
    const of = only === undefined ? server.name : undefined;
    const method = kind === "tools" ? "tools/call" : "prompts/get";
    await this.permit(call, method, of === undefined ? name : name.slice(of.length + 1), isNoted ? server : undefined);
    try {
      const { isLegacy, items } = await this.#offered(server, kind, call, false);
      const item = itemOf(items, of, name);
      const found = item && usable(server, item, isLegacy, call);
      if (found) return found;
    } catch (error) {
      if (error instanceof AccountMissing && kind === "tools") return accountToolOf(server, error);
      throw error;
    }
    // The client listed the tool before the user connected the account.
    const isListed = kind === "tools" && server.credentials.kind === "person";
    if (!isListed || publicName(of, accountToolName) !== name) throw unknown();
    return { server, item: {}, name: accountToolName, account: "connected" };
  }

  /**
   * Returns the approved items that the principal may use, or the account tool if the user has no connected account.
   */
  async #of(server: McpServer, kind: ListKind, call: ClientCall, isFresh: boolean): Promise<Found[]> {
    const isResource = kind === "resources" || kind === "resourceTemplates";
    if (isResource && !mayUseResources(server, call.principal)) return [];
    try {
      const { isLegacy, items } = await this.#offered(server, kind, call, isFresh);
      if (isResource) {
        return items.map((item) => ({ server, item, name: String(item["name"]) }));
      }
      const found = items.flatMap((item) => usable(server, item, isLegacy, call) ?? []);
      return firstOfEach(found, call.only === undefined ? server.name : undefined);
    } catch (error) {
      if (!(error instanceof AccountMissing)) throw error;
      return kind === "tools" ? [accountToolOf(server, error)] : [];
    }
  }

  /** Returns the approved items of a kind. The array stays the same while nothing changes. */
  async #offered(
    server: McpServer,
    kind: ListKind,
    call: ClientCall,
    isFresh: boolean,
  ): Promise<{ isLegacy: boolean; items: readonly JsonObject[] }> {
    const link = await this.open(server, call);
    const { isLegacy } = link;
    // Lists queue as a party of their own, so that they do not wait behind the caller's calls, or the reverse.
    const party = `lists of ${partyOf(call.principal)}`;
    const takeSlot = (cancellation: Cancellation) => this.#deps.slots.take({ server, party, cancellation });
    const items = await this.#lists.of(link, kind, takeSlot, isFresh);
    if (kind === "resources" || kind === "resourceTemplates") return { isLegacy, items };
    const guarded = kind === "tools" ? "tool" : "prompt";
    const lacks = link.capabilities[kind === "tools" ? "prompts" : "tools"] === undefined;
    return { isLegacy, items: await this.#deps.definitions.offered(server, guarded, items, lacks) };
  }
}

function accountToolOf(server: McpServer, account: AccountMissing): Found {
  return { server, item: accountTool(server, account), name: accountToolName, account };
}

/** Drops repeated names, because clients refuse a list with a repeated name and so lose the tools of all servers. */
function firstOfEach(all: readonly Found[], of: string | undefined): Found[] {
  const names = new Set<string>();
  return all.filter(({ name }) => names.size < names.add(publicName(of, name)).size);
}

/** Returns the item with the server's own name for it, or undefined if the principal may not use the item. */
function usable(
  server: McpServer,
  item: JsonObject,
  isLegacy: boolean,
  { principal }: Pick<ClientCall, "principal">,
): Found | undefined {
  const { name } = item;
  if (typeof name !== "string" || !mayUseTool(server, name, principal)) return undefined;
  // A client of a server of a later revision must leave out tools whose arguments cannot be mirrored as headers.
  return isLegacy || mirroredParameters(item["inputSchema"]) !== undefined ? { server, item, name } : undefined;
}

/** Rejects after `ms`. A result that arrives later is discarded. */
export async function within<Value>(ms: number, work: Promise<Value>): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new GatewayError("upstream_timeout", `No list within ${ms} ms.`)), ms);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
