// The tools, prompts and resources that a caller may use: the lists of all MCP servers together, and look-up by public
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

/** Milliseconds after which the list of a slow server is left out of the merged list. */
const listPatienceMs = 10_000;

/** An item of a server's list. `name` is its name at the server. */
export interface Found {
  readonly server: McpServer;
  readonly item: JsonObject;
  readonly name: string;
  /**
   * Set if the item is the `connect_account` tool, which replaces the server's tools while the user has no account
   * there.
   */
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
   * Rejects if the caller's limits are used up, before any process is started. If `server` is set, the refusal is
   * recorded.
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

  /** Returns the servers that the request addresses and the principal may use. */
  serversOf(call: Pick<ClientCall, "only" | "principal">): readonly McpServer[] {
    const { only, principal } = call;
    return only === undefined ? usableServers(this.#deps.servers, principal) : [this.requireServer(only, call)];
  }

  /**
   * Returns the server with this name. Throws the same `not_found` if it is missing or the principal may not use it.
   */
  requireServer(name: string, { principal }: Pick<ClientCall, "principal">): McpServer {
    const server = this.#deps.servers.find(name);
    if (server && mayUseServer(server, principal)) return server;
    throw new GatewayError("not_found", "There is no such MCP server, or this key may not use it.");
  }

  /** Returns all items of a kind, sorted by server name. If `isFresh`, lists are read again from the servers. */
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

  /** Finds an item by its public name. Rejects if it is unknown or the principal may not use it. */
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
    // The client may still list the `connect_account` tool although the account is connected meanwhile.
    const isListed = kind === "tools" && server.credentials.kind === "person";
    if (!isListed || publicName(of, accountToolName) !== name) throw unknown();
    return { server, item: {}, name: accountToolName, account: "connected" };
  }

  /**
   * Returns the approved items of the server that the principal may use. If the user has no connected account at the
   * server, the `connect_account` tool replaces the tools.
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

  /** Returns the approved items of a kind. It is the same array as long as nothing changes. */
  async #offered(
    server: McpServer,
    kind: ListKind,
    call: ClientCall,
    isFresh: boolean,
  ): Promise<{ isLegacy: boolean; items: readonly JsonObject[] }> {
    const link = await this.open(server, call);
    const { isLegacy } = link;
    // Lists wait for slots separately from calls, so that neither delays the other.
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

/** Removes items with a repeated public name, because clients would refuse the whole list. */
function firstOfEach(all: readonly Found[], of: string | undefined): Found[] {
  const names = new Set<string>();
  return all.filter(({ name }) => names.size < names.add(publicName(of, name)).size);
}

/** Returns the item with its name at the server; undefined if the principal may not use it. */
function usable(
  server: McpServer,
  item: JsonObject,
  isLegacy: boolean,
  { principal }: Pick<ClientCall, "principal">,
): Found | undefined {
  const { name } = item;
  if (typeof name !== "string" || !mayUseTool(server, name, principal)) return undefined;
  // In later protocol revisions, tools are left out whose parameters cannot be sent as headers as the tool declares.
  return isLegacy || mirroredParameters(item["inputSchema"]) !== undefined ? { server, item, name } : undefined;
}

/** Rejects if `work` takes longer than `ms`. Its later result is ignored. */
export async function within<Value>(ms: number, work: Promise<Value>): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new GatewayError("upstream_timeout", `No list within ${ms} ms.`)), ms);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
