// What a caller may use of the servers: their lists put together, or the one thing that clients know by a name.
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
  places: McpServerSlots;
  uses: Pick<ToolUses, "permit">;
  clock: Clock;
  log: Log;
}

/** A server that is slow to say what it has does not hold up the others. */
const listPatienceMs = 10_000;

/** Something that a server has, by the name that it is known by here. */
export interface Found {
  readonly server: McpServer;
  readonly item: JsonObject;
  readonly name: string;
  /** Why it is, or was, the one tool in the place of all others of its server. */
  readonly account?: AccountMissing | "connected";
}

export class ServerCatalog {
  readonly #deps: ServerCatalogDeps;
  readonly #lists: ServerLists;

  constructor(deps: ServerCatalogDeps) {
    this.#deps = deps;
    this.#lists = new ServerLists(deps.clock);
  }

  /** Whoever has nothing left starts no process. `server`: in whose name a refusal is on record. */
  async permit(
    { requestId, principal, trace }: ClientRequest,
    method: string,
    name: string | null,
    server?: McpServer,
  ): Promise<void> {
    await this.#deps.uses.permit({ requestId, principal, method, name, ...(server && { server, trace }) });
  }

  async open(server: McpServer, { principal, follower }: ClientRequest): Promise<ClientSession> {
    const link = await this.#deps.links.open(server, { principal });
    follower?.follow(server.name, link);
    return link;
  }

  /** Those at the address that was asked, as far as they may be used. */
  serversOf(call: Pick<ClientCall, "only" | "principal">): readonly McpServer[] {
    const { only, principal } = call;
    return only === undefined ? usableServers(this.#deps.servers, principal) : [this.requireServer(only, call)];
  }

  /** The server of an address of one; the same error for what is not there and for what may not be used. */
  requireServer(name: string, { principal }: Pick<ClientCall, "principal">): McpServer {
    const server = this.#deps.servers.find(name);
    if (server && mayUseServer(server, principal)) return server;
    throw new GatewayError("not_found", "There is no such MCP server, or this key may not use it.");
  }

  /** Returns the entries of a kind of all servers, in the order of their names. `isFresh`: as `ServerLists.of` has it. */
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

  /** By the name that clients know. Rejects where there is none, or it may not be used. */
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
    // It was listed before they connected their account.
    const isListed = kind === "tools" && server.credentials.kind === "person";
    if (!isListed || publicName(of, accountToolName) !== name) throw unknown();
    return { server, item: {}, name: accountToolName, account: "connected" };
  }

  /** What of it the principal may use, and is approved; where its person has no account there, the tool that says so. */
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

  /** What the server has of a kind, as far as it is approved: the same array while nothing changes. */
  async #offered(
    server: McpServer,
    kind: ListKind,
    call: ClientCall,
    isFresh: boolean,
  ): Promise<{ isLegacy: boolean; items: readonly JsonObject[] }> {
    const link = await this.open(server, call);
    const { isLegacy } = link;
    // A party of its own: who has many calls under way waits for its lists no longer than others, and others not behind its calls.
    const party = `lists of ${partyOf(call.principal)}`;
    const place = (cancellation: Cancellation) => this.#deps.places.take({ server, party, cancellation });
    const items = await this.#lists.of(link, kind, place, isFresh);
    if (kind === "resources" || kind === "resourceTemplates") return { isLegacy, items };
    const guarded = kind === "tools" ? "tool" : "prompt";
    const lacks = link.capabilities[kind === "tools" ? "prompts" : "tools"] === undefined;
    return { isLegacy, items: await this.#deps.definitions.offered(server, guarded, items, lacks) };
  }
}

/** The tool in the place of all others. */
function accountToolOf(server: McpServer, account: AccountMissing): Found {
  return { server, item: accountTool(server, account), name: accountToolName, account };
}

/** Clients refuse lists that have a name twice, and with it those of all other servers. */
function firstOfEach(all: readonly Found[], of: string | undefined): Found[] {
  const names = new Set<string>();
  return all.filter(({ name }) => names.size < names.add(publicName(of, name)).size);
}

/** Undefined where the principal may not use it. */
function usable(
  server: McpServer,
  item: JsonObject,
  isLegacy: boolean,
  { principal }: Pick<ClientCall, "principal">,
): Found | undefined {
  const { name } = item;
  if (typeof name !== "string" || !mayUseTool(server, name, principal)) return undefined;
  // Whoever asks a server of a later revision leaves out tools whose arguments nobody can tell how to send.
  return isLegacy || mirroredParameters(item["inputSchema"]) !== undefined ? { server, item, name } : undefined;
}

/** What comes later is nobody's any more. */
export async function within<Value>(ms: number, work: Promise<Value>): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new GatewayError("upstream_timeout", `No list within ${ms} ms.`)), ms);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
