// Handles requests of MCP clients: with the merged lists of all servers, or by calling the server of the named item.
import { GatewayError } from "../../base/errors.ts";
import { AccountMissing, type JsonObject } from "../../domain/tools/client-session.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";
import { mirroredParameters, parameterFault, parameterHeaders } from "../../domain/tools/parameter-headers.ts";
import type { ToolUses } from "../../domain/tools/tool-use.ts";
import { connectedAnswer, missingAnswer } from "./account-tool.ts";
import { type Found, ServerCatalog, type ServerCatalogDeps, within } from "./catalog.ts";
import type { ClientCall, ClientRequest } from "./client-call.ts";
import { publicName, publicUri } from "./names.ts";
import { Resources } from "./resources.ts";
import { invalidParams, methodNotFound, RpcError, rpcErrorOf } from "./rpc-error.ts";
import { ServerCalls, type ServerCallsDeps } from "./server-calls.ts";
import { type ServerInfo, serverInfoOf } from "./server-info.ts";
import { isObject, type ListKind, listKinds } from "./server-lists.ts";
import { callTool, isSearchTool, searchToolNames, searchTools, searchToolsAnswer } from "./tool-search.ts";

export interface RequestHandlerDeps extends ServerCatalogDeps, ServerCallsDeps {
  servers: ServerCatalogDeps["servers"];
  clock: ServerCatalogDeps["clock"];
  uses: ToolUses;
  /** Calls `listener` after each change of servers or approvals. Returns a function that unsubscribes. */
  onChange(listener: () => void): () => void;
  /** Returns the number of tools above which clients get a search tool instead of all tools. */
  searchFrom(): number;
}

/**
 * Milliseconds after which initialization no longer waits for a slow server. Such a server counts as having every
 * capability.
 */
const introductionPatienceMs = 3_000;
const pageSize = 1_000;

/** Methods that are handled, besides lists. */
const methods = [
  ...["tools/call", "prompts/get", "resources/read", "resources/subscribe", "resources/unsubscribe"],
  ...["completion/complete", "tasks/get", "tasks/update", "tasks/result", "tasks/cancel"],
];

const listMethods: ReadonlyMap<string, ListKind> = new Map(
  Object.entries(listKinds).map(([kind, { method }]) => [method, kind as ListKind]),
);

/** All methods that some protocol revision has and this gateway handles. */
export const handledMethods: ReadonlySet<string> = new Set([...methods, ...listMethods.keys()]);

export class RequestHandler {
  readonly #deps: RequestHandlerDeps;
  readonly #offers: ServerCatalog;
  readonly #calls: ServerCalls;
  readonly #resources: Resources;

  constructor(deps: RequestHandlerDeps) {
    this.#deps = deps;
    this.#offers = new ServerCatalog(deps);
    this.#calls = new ServerCalls(deps, this.#offers);
    this.#resources = new Resources(deps.servers, this.#offers, this.#calls);
  }

  get onChange(): RequestHandlerDeps["onChange"] {
    return this.#deps.onChange;
  }

  /** Returns the result of a client's request. Rejects with an RpcError. */
  async answer(method: string, params: JsonObject, call: ClientCall): Promise<JsonObject> {
    try {
      return await this.result(method, params, call);
    } catch (error) {
      if (!(error instanceof RpcError) && !(error instanceof GatewayError))
        this.#deps.log.error("mcp_fault", { request_id: call.requestId, method, error: String(error) });
      throw rpcErrorOf(error);
    }
  }

  /**
   * Returns the result for callers other than MCP clients. Rejects with a GatewayError, or an RpcError of the server.
   */
  async result(method: string, params: JsonObject, call: ClientCall): Promise<JsonObject> {
    const kind = listMethods.get(method);
    if (kind) return this.#list(kind, params, call);
    switch (method) {
      case "tools/call":
        return this.#callTool(params, call);
      case "prompts/get":
        return this.#getPrompt(params, call);
      case "resources/read":
      case "resources/subscribe":
      case "resources/unsubscribe":
        return this.#resources.ask(method, params, call);
      case "completion/complete":
        return this.#complete(params, call);
      case "tasks/get":
      case "tasks/update":
      case "tasks/result":
      case "tasks/cancel":
        return this.#calls.atTask(method, params, call);
      default:
        throw new RpcError(methodNotFound, `Method not found: ${method.slice(0, 100)}`);
    }
  }

  /** Cancels suspended calls and tasks, because the gateway stops and clients cannot return. */
  async close(): Promise<void> {
    await this.#calls.close();
  }

  /**
   * Returns how the headers of a call differ from its arguments; undefined if they agree or the caller may not use the
   * tool.
   */
  async parameterFault(
    { name, arguments: args }: JsonObject,
    call: ClientCall,
    headers: Pick<Headers, "get">,
  ): Promise<string | undefined> {
    const found = await this.#offers.find("tools", name, call, { isNoted: false }).catch(() => undefined);
    return found && parameterFault(mirroredParameters(found.item["inputSchema"]) ?? [], args, headers);
  }

  /**
   * Returns the server with this name. Throws the same `not_found` if it is missing or the principal may not use it.
   */
  requireServer(name: string, call: Pick<ClientCall, "principal">): McpServer {
    return this.#offers.requireServer(name, call);
  }

  /** Subscribes a listening client to changes of all its servers, and to these resources. */
  listen(uris: readonly unknown[], call: ClientCall): Promise<void> {
    return this.#resources.listen(uris, call);
  }

  /** Returns the capabilities and instructions for a client that initializes. */
  async introduction(from: ClientRequest, isLegacy: boolean): Promise<ServerInfo> {
    const { links, definitions } = this.#deps;
    const isPermitted = await this.#offers.permit(from, "initialize", null).then(
      () => true,
      () => false,
    );
    const met = (isPermitted ? this.#offers.serversOf(from) : []).map(async (server) => {
      const opened = within(introductionPatienceMs, links.open(server, from));
      const link = await opened.catch(() => undefined);
      if (!link) return { server, link, instructions: undefined };
      const name = "instructions";
      // Record empty instructions too, so that later ones count as a change.
      const listed = link.instructions ? [{ name, description: link.instructions }] : [];
      const [offered] = await definitions.offered(server, name, listed).catch(() => []);
      return { server, link, instructions: offered && link.instructions };
    });
    return serverInfoOf(await Promise.all(met), isLegacy, from.only);
  }

  async #list(kind: ListKind, { cursor }: JsonObject, call: ClientCall): Promise<JsonObject> {
    // Later pages use the same list as the first page, so only the first one is read again.
    const all = await this.#offers.all(kind, call, call.isFresh === true && cursor === undefined);
    if (kind === "tools" && call.only === undefined && this.#isSearched(all.length, call)) {
      return { tools: searchTools(all.length) };
    }
    const from = cursor === undefined ? 0 : Number(cursor);
    if (cursor !== undefined && (typeof cursor !== "string" || String(from) !== cursor || !(from in all))) {
      throw new RpcError(invalidParams, "cursor is none that this gateway gave.");
    }
    const page = all.slice(from, from + pageSize).map((found) => shown(kind, found, call));
    const end = from + page.length;
    return { [kind]: page, ...(end < all.length && { nextCursor: String(end) }) };
  }

  #isSearched(count: number, { listing }: ClientCall): boolean {
    return listing === undefined ? count > this.#deps.searchFrom() : listing === "search";
  }

  async #callTool(params: JsonObject, call: ClientCall): Promise<JsonObject> {
    const { name, arguments: args } = params;
    if (call.only === undefined && typeof name === "string" && isSearchTool(name)) {
      const all = await this.#offers.all("tools", call);
      if (name === searchToolNames.search) {
        const tools = all.values().map((found) => shown("tools", found, call));
        return await searchToolsAnswer(tools, args, call.principal.account.id);
      }
      const inner = callTool(args);
      return await this.#callTool({ ...params, ...inner }, call);
    }
    const resumed = this.#calls.resumed("tools/call", name, params, call);
    if (resumed) return await resumed;
    const { server, item, name: own, account } = await this.#offers.find("tools", name, call);
    if (account === "connected") {
      if (call.isAskable) call.notify(listKinds.tools.changed, {});
      return connectedAnswer(server);
    }
    if (account) return missingAnswer(account);
    const headers = parameterHeaders(mirroredParameters(item["inputSchema"]) ?? [], params["arguments"]);
    const { task, ...plain } = params;
    // In later protocol revisions, only the server decides whether it creates a task.
    const asked = call.isAskable && task !== undefined ? { ...plain, task } : plain;
    try {
      return await this.#calls.use(
        "tools/call",
        server,
        own,
        { ...asked, name: own },
        { ...call, headers, tool: item },
      );
    } catch (error) {
      if (error instanceof AccountMissing) return missingAnswer(error);
      throw error;
    }
  }

  async #getPrompt(params: JsonObject, call: ClientCall): Promise<JsonObject> {
    const resumed = this.#calls.resumed("prompts/get", params["name"], params, call);
    if (resumed) return await resumed;
    const { server, name } = await this.#offers.find("prompts", params["name"], call);
    return await this.#calls.use("prompts/get", server, name, { ...params, name }, call);
  }

  async #complete(params: JsonObject, call: ClientCall): Promise<JsonObject> {
    const { ref } = params;
    const method = "completion/complete";
    if (!isObject(ref)) throw new RpcError(invalidParams, "ref must be an object.");
    if (ref["type"] === "ref/prompt") {
      const { server, name } = await this.#offers.find("prompts", ref["name"], call);
      return await this.#calls.use(method, server, name, { ...params, ref: { ...ref, name } }, call);
    }
    const { server, uri } = this.#resources.find(ref["uri"], call);
    return await this.#calls.use(method, server, null, { ...params, ref: { ...ref, uri } }, call);
  }
}

/** Returns the item as clients see it, with its public name. */
function shown(kind: ListKind, { server, item, name }: Found, { only }: ClientCall): JsonObject {
  const of = only === undefined ? server.name : undefined;
  if (kind === "tools" || kind === "prompts") return { ...item, name: publicName(of, name) };
  if (of === undefined) return item;
  const member = kind === "resources" ? "uri" : "uriTemplate";
  return { ...item, [member]: publicUri(of, String(item[member])) };
}
