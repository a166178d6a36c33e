// Answers what clients of tools ask: out of the lists of all servers that they may use, or by the one that has what they name.
import { Cancellation } from "../../base/cancellation.ts";
import type { Clock } from "../../base/clock.ts";
import { GatewayError } from "../../base/errors.ts";
import type { Log } from "../../base/log.ts";
import { mirroredParameters, parameterFault, parameterHeaders } from "../../domain/tools/parameter-headers.ts";
import type { DefinitionGuard } from "../../domain/tools/tool-definition.ts";
import {
  AccountMissing,
  type JsonObject,
  type ToolAnswer,
  type ToolExchange,
  type ToolLink,
  type ToolLinks,
} from "../../domain/tools/tool-link.ts";
import type { ToolServer, ToolServers } from "../../domain/tools/tool-server.ts";
import type { ToolSampler, ToolUses } from "../../domain/tools/tool-use.ts";
import { mayUseServer } from "../../domain/tools/usable-server.ts";
import { accountTool, accountToolName, connectedAnswer, missingAnswer } from "./account-tool.ts";
import { AwaitedTask, isTaskAlone } from "./awaited-task.ts";
import { type ClientCall, type ClientRequest, keepAsked } from "./client-call.ts";
import { HeldCalls } from "./held-calls.ts";
import { type Introduction, introductionOf } from "./introduction.ts";
import { itemOf, longestUri, partsOfUri, publicName, publicUri, serverOfName } from "./names.ts";
import { invalidParams, methodNotFound, missingCapability, RpcError, rpcErrorOf } from "./rpc-error.ts";
import { isObject, type ListKind, listKinds, ServerLists } from "./server-lists.ts";
import {
  hasTasksExtension,
  isTellable,
  relatedTask,
  Tasks,
  taskIn,
  tasksExtension,
  withoutTasksExtension,
} from "./tasks.ts";
import { callTool, isSearchTool, searchToolNames, searchTools, searchToolsAnswer } from "./tool-search.ts";
import { mayUseResources, mayUseTool, usableServers } from "./view.ts";

export interface DeskDeps {
  servers: Pick<ToolServers, "all" | "find">;
  links: Pick<ToolLinks, "open">;
  definitions: DefinitionGuard;
  /** Calls `listener` after each change of servers and of what is approved of them; gives what ends that. */
  onChange(listener: () => void): () => void;
  uses: ToolUses;
  sampler: ToolSampler;
  /** With more tools than this, all servers together offer a search in place of their schemas. */
  searchFrom(): number;
  clock: Clock;
  log: Log;
}

/** A server that is slow to say what it has does not hold up the others. */
const listPatienceMs = 10_000;
/** What a server that is slower has is told as if it had everything. */
const introductionPatienceMs = 3_000;
const pageSize = 1_000;
/** Characters of what a server says of a call that failed, in the error in its place. */
const longestSaid = 1_000;
/** A server that asks again and again is left. */
const mostRounds = 8;

/** Something that a server has, by the name that it is known by here. */
export interface Found {
  readonly server: ToolServer;
  readonly item: JsonObject;
  readonly name: string;
  /** Why it is, or was, the one tool in the place of all others of its server. */
  readonly account?: AccountMissing | "connected";
}

/** Methods that it answers, but for lists. */
const methods = [
  ...["tools/call", "prompts/get", "resources/read", "resources/subscribe", "resources/unsubscribe"],
  ...["completion/complete", "tasks/get", "tasks/update", "tasks/result", "tasks/cancel"],
];

const listMethods: ReadonlyMap<string, ListKind> = new Map(
  Object.entries(listKinds).map(([kind, { method }]) => [method, kind as ListKind]),
);

/** Those that there are for clients of any revision; what others mean, nobody here knows. */
export const deskMethods: ReadonlySet<string> = new Set([...methods, ...listMethods.keys()]);

export class Desk {
  readonly #deps: DeskDeps;
  readonly #lists: ServerLists;
  readonly #held = new HeldCalls();
  readonly #tasks = new Tasks();

  constructor(deps: DeskDeps) {
    this.#deps = deps;
    this.#lists = new ServerLists(deps.clock);
  }

  get onChange(): DeskDeps["onChange"] {
    return this.#deps.onChange;
  }

  /** The result of a request. Rejects with an RpcError. */
  async answer(method: string, params: JsonObject, call: ClientCall): Promise<JsonObject> {
    try {
      return await this.result(method, params, call);
    } catch (error) {
      if (!(error instanceof RpcError) && !(error instanceof GatewayError))
        this.#deps.log.error("mcp_fault", { request_id: call.requestId, method, error: String(error) });
      throw rpcErrorOf(error);
    }
  }

  /** The same for who is no client of the protocol. Rejects with a GatewayError, or with the RpcError of a server. */
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
        return this.#atResource(method, params, call);
      case "completion/complete":
        return this.#complete(params, call);
      case "tasks/get":
      case "tasks/update":
      case "tasks/result":
      case "tasks/cancel":
        return this.#atTask(method, params, call);
      default:
        throw new RpcError(methodNotFound, `Method not found: ${method.slice(0, 100)}`);
    }
  }

  /** Nobody can come for what is under way any more. */
  async close(): Promise<void> {
    this.#held.close();
    await this.#tasks.close();
  }

  /** What of the headers of a call is not as its arguments are; of what may not be called, nothing is told here. */
  async parameterFault({ name, arguments: args }: JsonObject, call: ClientCall): Promise<string | undefined> {
    const found = await this.#find("tools", name, call, { isNoted: false }).catch(() => undefined);
    return (
      found && parameterFault(mirroredParameters(found.item["inputSchema"]) ?? [], args, new Headers(call.headers))
    );
  }

  /** The server of an address of one; the same error for what is not there and for what may not be used. */
  requireServer(name: string, { principal }: Pick<ClientCall, "principal">): ToolServer {
    const server = this.#deps.servers.find(name);
    if (server && mayUseServer(server, principal)) return server;
    throw new GatewayError("not_found", "There is no such server of tools, or this key may not use it.");
  }

  /** What a client is told at the beginning, of the servers that it may use. */
  async introduction(from: ClientRequest, isLegacy: boolean): Promise<Introduction> {
    const { links, definitions } = this.#deps;
    const isPermitted = await this.#permit(from, "initialize", null).then(
      () => true,
      () => false,
    );
    const met = (isPermitted ? this.#serversOf(from) : []).map(async (server) => {
      const opened = within(introductionPatienceMs, links.open(server, from));
      const link = await opened.catch(() => undefined);
      if (!link) return { server, link, instructions: undefined };
      const name = "instructions";
      // What it says later is later than when it was first seen, also where it says nothing now.
      const listed = link.instructions ? [{ name, description: link.instructions }] : [];
      const [offered] = await definitions.offered(server, name, listed).catch(() => []);
      return { server, link, instructions: offered && link.instructions };
    });
    return introductionOf(await Promise.all(met), isLegacy, from.only);
  }

  #serversOf(call: Pick<ClientCall, "only" | "principal">): readonly ToolServer[] {
    const { only, principal } = call;
    return only === undefined ? usableServers(this.#deps.servers, principal) : [this.requireServer(only, call)];
  }

  async #list(kind: ListKind, { cursor }: JsonObject, call: ClientCall): Promise<JsonObject> {
    const all = await this.#all(kind, call);
    if (kind === "tools" && call.only === undefined && this.#isSearched(all.length, call)) {
      return { tools: searchTools(all.length) };
    }
    const from = cursor === undefined ? 0 : Number(cursor);
    if (cursor !== undefined && (typeof cursor !== "string" || String(from) !== cursor || !(from in all))) {
      throw new RpcError(invalidParams, "cursor is none that this gateway gave.");
    }
    const page = all.slice(from, from + pageSize).map((found) => this.#shown(kind, found, call));
    const end = from + page.length;
    return { [kind]: page, ...(end < all.length && { nextCursor: String(end) }) };
  }

  #isSearched(count: number, { listing }: ClientCall): boolean {
    return listing === undefined ? count > this.#deps.searchFrom() : listing === "search";
  }

  /** What all servers have of a kind, in the order of their names. */
  async #all(kind: ListKind, call: ClientCall): Promise<Found[]> {
    await this.#permit(call, listKinds[kind].method, null);
    const servers = this.#serversOf(call);
    if (call.only !== undefined)
      return (await Promise.all(servers.map((server) => this.#of(server, kind, call)))).flat();
    const lists = await Promise.all(
      servers.map(async (server) => {
        try {
          return await within(listPatienceMs, this.#of(server, kind, call));
        } catch (error) {
          const { message, detail } = error as { message?: string; detail?: string };
          this.#deps.log.warn("mcp_list_failed", { server: server.name, kind, reason: detail ?? message ?? "unknown" });
          return [];
        }
      }),
    );
    return lists.flat();
  }

  /** What of it the principal may use, and is approved; where its person has no account there, the tool that says so. */
  async #of(server: ToolServer, kind: ListKind, call: ClientCall): Promise<Found[]> {
    const isResource = kind === "resources" || kind === "resourceTemplates";
    if (isResource && !mayUseResources(server, call.principal)) return [];
    try {
      const { isLegacy, items } = await this.#offered(server, kind, call);
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
    server: ToolServer,
    kind: ListKind,
    call: ClientCall,
  ): Promise<{ isLegacy: boolean; items: readonly JsonObject[] }> {
    const link = await this.#open(server, call);
    const { isLegacy } = link;
    const items = await this.#lists.of(link, kind);
    if (kind === "resources" || kind === "resourceTemplates") return { isLegacy, items };
    const guarded = kind === "tools" ? "tool" : "prompt";
    const lacks = link.capabilities[kind === "tools" ? "prompts" : "tools"] === undefined;
    return { isLegacy, items: await this.#deps.definitions.offered(server, guarded, items, lacks) };
  }

  async #open(server: ToolServer, { principal, follower }: ClientCall): Promise<ToolLink> {
    const link = await this.#deps.links.open(server, { principal });
    follower?.follow(server.name, link);
    return link;
  }

  /** Whoever has nothing left starts no process. `server`: in whose name a refusal is on record. */
  async #permit(
    { requestId, principal, trace }: ClientRequest,
    method: string,
    name: string | null,
    server?: ToolServer,
  ): Promise<void> {
    await this.#deps.uses.permit({ requestId, principal, method, name, ...(server && { server, trace }) });
  }

  /** Follows all servers of a client that listens, and these of their resources. */
  async listen(uris: readonly unknown[], call: ClientCall): Promise<void> {
    await this.#permit(call, "subscriptions/listen", null);
    await Promise.allSettled(this.#serversOf(call).map((server) => this.#open(server, call)));
    await Promise.allSettled(uris.map((uri) => this.#atResource("resources/subscribe", { uri }, call)));
  }

  #shown(kind: ListKind, { server, item, name }: Found, { only }: ClientCall): JsonObject {
    const of = only === undefined ? server.name : undefined;
    if (kind === "tools" || kind === "prompts") return { ...item, name: publicName(of, name) };
    if (of === undefined) return item;
    const place = kind === "resources" ? "uri" : "uriTemplate";
    return { ...item, [place]: publicUri(of, String(item[place])) };
  }

  /** By the name that clients know. Rejects where there is none, or it may not be used. */
  async #find(
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
    await this.#permit(call, method, of === undefined ? name : name.slice(of.length + 1), isNoted ? server : undefined);
    try {
      const { isLegacy, items } = await this.#offered(server, kind, call);
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

  async #callTool(params: JsonObject, call: ClientCall): Promise<JsonObject> {
    const { name, arguments: args } = params;
    if (call.only === undefined && typeof name === "string" && isSearchTool(name)) {
      const all = await this.#all("tools", call);
      if (name === searchToolNames.search) {
        return searchToolsAnswer(
          all.map((found) => this.#shown("tools", found, call)),
          args,
        );
      }
      const inner = callTool(args);
      return await this.#callTool({ ...params, ...inner }, call);
    }
    const resumed = this.#resumed("tools/call", name, params, call);
    if (resumed) return await resumed;
    const { server, item, name: own, account } = await this.#find("tools", name, call);
    if (account === "connected") {
      if (call.isAskable) call.notify(listKinds.tools.changed, {});
      return connectedAnswer(server);
    }
    if (account) return missingAnswer(account);
    const headers = parameterHeaders(mirroredParameters(item["inputSchema"]) ?? [], params["arguments"]);
    const { task, ...plain } = params;
    // In later revisions the server alone decides whether it makes one.
    const asked = call.isAskable && task !== undefined ? { ...plain, task } : plain;
    try {
      return await this.#use("tools/call", server, own, { ...asked, name: own }, { ...call, headers, tool: item });
    } catch (error) {
      if (error instanceof AccountMissing) return missingAnswer(error);
      throw error;
    }
  }

  async #getPrompt(params: JsonObject, call: ClientCall): Promise<JsonObject> {
    const resumed = this.#resumed("prompts/get", params["name"], params, call);
    if (resumed) return await resumed;
    const found = await this.#find("prompts", params["name"], call);
    return await this.#use("prompts/get", found.server, found.name, { ...params, name: found.name }, call);
  }

  async #atResource(method: string, params: JsonObject, call: ClientCall): Promise<JsonObject> {
    const resumed = this.#resumed(method, params["uri"], params, call);
    if (resumed) return await resumed;
    const { server, uri } = this.#resource(params["uri"], call);
    const use = () => this.#use(method, server, uri, { ...params, uri }, call);
    const { follower } = call;
    if (!follower || method === "resources/read") return await use();
    await this.#permit(call, method, uri, server);
    await this.#open(server, call);
    if (method === "resources/unsubscribe") return follower.remove(server.name, uri) ? await use() : {};
    if (!follower.hasRoom) throw new RpcError(invalidParams, "As many resources are subscribed to as may be, 100.");
    if (!follower.add(server.name, uri)) return {};
    try {
      return await use();
    } catch (error) {
      follower.remove(server.name, uri);
      throw error;
    }
  }

  #resource(asked: unknown, call: ClientCall): { server: ToolServer; uri: string } {
    const { only, principal } = call;
    if (typeof asked !== "string" || asked.length > longestUri) {
      throw new RpcError(invalidParams, `uri must be a text of at most ${longestUri} characters.`);
    }
    const parts = only === undefined ? partsOfUri(asked) : { server: only, uri: asked };
    const server = parts && this.#deps.servers.find(parts.server);
    if (!server || !mayUseResources(server, principal)) {
      throw new RpcError(invalidParams, `Unknown resource: ${asked.slice(0, 200)}`, { uri: asked });
    }
    return { server, uri: parts.uri };
  }

  async #complete(params: JsonObject, call: ClientCall): Promise<JsonObject> {
    const { ref } = params;
    if (!isObject(ref)) throw new RpcError(invalidParams, "ref must be an object.");
    const { type, name, uri } = ref;
    if (type === "ref/prompt") {
      const found = await this.#find("prompts", name, call);
      const asked = { ...params, ref: { ...ref, name: found.name } };
      return await this.#use("completion/complete", found.server, found.name, asked, call);
    }
    const resource = this.#resource(uri, call);
    const asked = { ...params, ref: { ...ref, uri: resource.uri } };
    return await this.#use("completion/complete", resource.server, null, asked, call);
  }

  async #atTask(method: string, params: JsonObject, call: ClientCall): Promise<JsonObject> {
    const { taskId } = params;
    if (!call.isAskable && !hasTasksExtension(call.capabilities)) {
      const requiredCapabilities = { extensions: { [tasksExtension]: {} } };
      throw new RpcError(missingCapability, "Tasks are for clients that say that they know them.", {
        requiredCapabilities,
      });
    }
    if (typeof taskId !== "string") throw new RpcError(invalidParams, "taskId must be a text.");
    const { only, principal } = call;
    const dot = taskId.indexOf(".");
    const name = only ?? taskId.slice(0, Math.max(0, dot));
    const server = this.#deps.servers.find(name);
    const own = only === undefined ? taskId.slice(dot + 1) : taskId;
    const task = server && mayUseServer(server, principal) ? this.#tasks.find(call, server, own) : undefined;
    if (!server || !task || !mayUseTool(server, task.tool, principal))
      throw new RpcError(invalidParams, "Unknown task.");
    const told = await this.#use(method, server, null, { ...params, taskId: own }, call);
    await task.heard(method, { ...told, taskId: own });
    return told;
  }

  /** Asks the server that has it, admitted and on record. */
  async #use(
    method: string,
    server: ToolServer,
    name: string | null,
    params: JsonObject,
    call: ClientCall,
  ): Promise<JsonObject> {
    const { principal, requestId, cancellation, trace } = call;
    await this.#permit(call, method, name, server);
    const link = await this.#open(server, call);
    const work = async (one: ClientCall): Promise<JsonObject> => {
      const content = () => JSON.stringify(params);
      const use = await this.#deps.uses.begin({
        requestId,
        principal,
        server,
        method,
        name,
        content,
        cancellation,
        trace,
      });
      try {
        const isAwaited = params["task"] === undefined && one.tool !== undefined && isTaskAlone(link, one.tool);
        const result = isAwaited
          ? await this.#await(link, server, params, one)
          : await this.#ask(link, method, params, one);
        const made = method === "tools/call" && name !== null ? taskIn(result) : undefined;
        if (made) {
          const letGo = this.#takeTask(made, link, params, one);
          this.#tasks.add(one, { server, tool: name ?? "", link, use, made, letGo });
          return this.#told(result, server, one);
        }
        const isError = result["isError"] === true;
        // A server may answer to a client that has left.
        const outcome = one.cancellation.cancelled ? "cancelled" : "completed";
        await use.ended({ outcome, code: null, isError, content: () => JSON.stringify(result) });
        return this.#told(result, server, one);
      } catch (error) {
        const isLeft = one.cancellation.cancelled;
        const code = error instanceof GatewayError ? error.code : "upstream_error";
        const outcome = isLeft ? "cancelled" : "failed";
        await use.ended({ outcome, code: isLeft ? null : code, isError: false, content: () => "" });
        throw error;
      }
    };
    const subject = { server: server.name, method, name };
    if (call.isAskable || !link.isLegacy) return await work(call);
    return await this.#held.begin({ ...call, lacking: new Set() }, subject, params, work);
  }

  /**
   * What comes of a call whose client brings what its server asked for, also where that takes no new calls any more; undefined:
   * it brings nothing of the kind. `asked`: the name or address by which the client knows what it is of.
   */
  #resumed(
    method: string,
    asked: unknown,
    { requestState, inputResponses }: JsonObject,
    call: ClientCall,
  ): Promise<JsonObject> | undefined {
    if (call.isAskable) return undefined;
    const { only, principal } = call;
    return this.#held.resume(call, requestState, inputResponses, ({ server: name, method: of, name: own }) => {
      const server = only === undefined || only === name ? this.#deps.servers.find(name) : undefined;
      if (!server || own === null || of !== method || !mayUseServer(server, principal)) return false;
      const at = only === undefined ? name : undefined;
      if (method !== "resources/read") return asked === publicName(at, own) && mayUseTool(server, own, principal);
      return asked === (at === undefined ? own : publicUri(at, own)) && mayUseResources(server, principal);
    });
  }

  /**
   * Gives what lets go of what it was asked with. Throws where the client did not ask for one, or has too many: its server has
   * nobody to work for then.
   */
  #takeTask(made: JsonObject, link: ToolLink, params: JsonObject, call: ClientCall): () => void {
    try {
      this.#requireTask(made, link, params, call);
      return keepAsked(call, params);
    } catch (error) {
      const nobody = { holder: call.holder, cancellation: new Cancellation() };
      link.request("tasks/cancel", { taskId: made["taskId"] }, nobody).catch(() => {});
      throw error;
    }
  }

  #requireTask(made: JsonObject, link: ToolLink, { task }: JsonObject, call: ClientCall): void {
    const isAsked = link.isLegacy ? task !== undefined : !call.isAskable && hasTasksExtension(call.capabilities);
    if (!isAsked || !isTellable(made)) {
      const message = "The server made a task that nobody asked for, or that cannot be asked for.";
      throw new GatewayError("upstream_error", message);
    }
    if (this.#tasks.hasRoom(call)) return;
    const message = "As many tasks are under way for this key as may. Let some of them end.";
    throw new GatewayError("rate_limit_exceeded", message);
  }

  async #ask(link: ToolLink, method: string, params: JsonObject, call: ClientCall): Promise<JsonObject> {
    let rounds = 0;
    const next = async ({ resultType, inputRequests, requestState }: JsonObject) => {
      if (resultType !== "input_required" || !isObject(inputRequests)) return undefined;
      if (!call.isAskable && !Object.values(inputRequests).every((one) => this.#isOurs(one, call))) return undefined;
      if (rounds++ >= mostRounds) {
        throw new GatewayError("upstream_error", `The server asked back more than ${mostRounds} times.`);
      }
      const inputResponses: Record<string, JsonObject> = {};
      for (const [key, one] of Object.entries(inputRequests)) {
        if (!isObject(one)) continue;
        inputResponses[key] = await this.#answerAsked(
          String(one["method"]),
          isObject(one["params"]) ? one["params"] : {},
          call,
        );
      }
      return { method, params: { ...params, inputResponses, ...(requestState !== undefined && { requestState }) } };
    };
    const exchange = { ...this.#exchange(call, progressTokenOf(params)), next };
    return resultOf(await link.request(method, params, exchange), call);
  }

  /** The same for a tool that its server takes for a task alone, of which the client knows nothing. */
  async #await(link: ToolLink, server: ToolServer, params: JsonObject, call: ClientCall): Promise<JsonObject> {
    const { holder, cancellation } = call;
    const task = new AwaitedTask(server, this.#deps.clock, cancellation);
    const exchange = { ...this.#exchange(call, progressTokenOf(params)), next: task.next };
    try {
      return task.told(resultOf(await link.request("tools/call", task.asked(params), exchange), call));
    } catch (error) {
      task.callOff(link, { holder, cancellation: new Cancellation() });
      throw error;
    }
  }

  /** Whether the gateway answers it in the place of a client that cannot: by one of its own models. */
  #isOurs(asked: unknown, { capabilities }: ClientCall): boolean {
    return isObject(asked) && asked["method"] === "sampling/createMessage" && capabilities["sampling"] === undefined;
  }

  async #answerAsked(method: string, params: JsonObject, call: ClientCall): Promise<JsonObject> {
    const { principal, capabilities, lacking, cancellation } = call;
    const needed = neededCapability(method);
    const isOurs = this.#isOurs({ method }, call);
    const isLacking = needed !== undefined && capabilities[needed] === undefined;
    if (isLacking && !(isOurs && principal.scopes.has("chat:write"))) lacking?.add(needed);
    if (isOurs) return await this.#deps.sampler.sample(principal, params, cancellation.signal);
    if (needed === undefined || isLacking) {
      throw new RpcError(methodNotFound, `The client has no ${needed ?? "such"} capability.`);
    }
    return await call.ask(method, params);
  }

  #exchange(call: ClientCall, progressToken: unknown): ToolExchange {
    const { holder, cancellation, capabilities, headers } = call;
    const samples = call.principal.scopes.has("chat:write") ? { sampling: {} } : {};
    return {
      ...{ holder, cancellation, headers },
      // Tasks of earlier revisions are others.
      clientCapabilities: { ...samples, ...(call.isAskable ? withoutTasksExtension(capabilities) : capabilities) },
      notified: (method, params) => {
        if (method !== "notifications/progress") call.notify(method, params);
        else if (progressToken !== undefined) call.notify(method, { ...params, progressToken });
      },
      asked: (method, params) => this.#answerAsked(method, params, call),
    };
  }

  /** A result as the client of all servers reads it: what it names must lead back to the same server. */
  #told(result: JsonObject, server: ToolServer, call: ClientCall): JsonObject {
    const { only, isAskable } = call;
    const { resultType, ttlMs: _, cacheScope: __, ...plain } = result;
    // Earlier revisions know neither.
    const told = isAskable && resultType !== "input_required" ? plain : result;
    if (only !== undefined) return told;
    const { name } = server;
    const { content, contents, messages, taskId, task, result: ofTask, _meta } = told;
    const publicTask = (one: JsonObject) => ({ ...one, taskId: `${name}.${one["taskId"]}` });
    const related = isObject(_meta) ? _meta[relatedTask] : undefined;
    return {
      ...told,
      ...(Array.isArray(content) && { content: content.map((block) => withPublicUri(block, name)) }),
      ...(Array.isArray(contents) && { contents: contents.map((one) => publicResource(one, name)) }),
      ...(Array.isArray(messages) && { messages: messages.map((one) => withPublicMessage(one, name)) }),
      ...(typeof taskId === "string" && { taskId: `${name}.${taskId}` }),
      ...(typeof taskId === "string" && isObject(ofTask) && { result: this.#told(ofTask, server, call) }),
      ...(isObject(task) && typeof task["taskId"] === "string" && { task: publicTask(task) }),
      ...(isObject(related) && { _meta: { ...(isObject(_meta) && _meta), [relatedTask]: publicTask(related) } }),
    };
  }
}

function progressTokenOf({ _meta }: JsonObject): unknown {
  return isObject(_meta) ? _meta["progressToken"] : undefined;
}

function resultOf(answer: ToolAnswer, { lacking }: Pick<ClientCall, "lacking">): JsonObject {
  const isFailed = "error" in answer || answer.result["isError"] === true;
  if (isFailed && lacking && lacking.size > 0) throw lackOf(lacking, answer);
  if ("result" in answer) return answer.result;
  const { code, message, data } = answer.error;
  throw new RpcError(code, message, data);
}

/** A server of an earlier revision learns only when it asks what a client cannot, and says that it failed as it likes. */
function lackOf(lacking: ReadonlySet<string>, answer: ToolAnswer): RpcError {
  const requiredCapabilities = Object.fromEntries([...lacking].map((name) => [name, {}]));
  const what = `The server asked for what this client does not say that it can: ${[...lacking].join(", ")}.`;
  const said = "error" in answer ? answer.error.message : textIn(answer.result);
  return new RpcError(missingCapability, `${what} It said: ${said.slice(0, longestSaid)}`, { requiredCapabilities });
}

function textIn({ content }: JsonObject): string {
  const blocks: unknown[] = Array.isArray(content) ? content : [];
  return blocks
    .flatMap((block) => (isObject(block) && block["type"] === "text" ? String(block["text"]) : []))
    .join("\n");
}

function neededCapability(method: string): string | undefined {
  if (method === "sampling/createMessage") return "sampling";
  if (method === "elicitation/create") return "elicitation";
  return method === "roots/list" ? "roots" : undefined;
}

function withPublicMessage(message: unknown, server: string): unknown {
  return isObject(message) ? { ...message, content: withPublicUri(message["content"], server) } : message;
}

function withPublicUri(block: unknown, server: string): unknown {
  if (!isObject(block)) return block;
  if (block["type"] === "resource_link") return publicResource(block, server);
  return block["type"] === "resource" ? { ...block, resource: publicResource(block["resource"], server) } : block;
}

function publicResource(resource: unknown, server: string): unknown {
  if (!isObject(resource) || typeof resource["uri"] !== "string") return resource;
  return { ...resource, uri: publicUri(server, resource["uri"]) };
}

/** The tool in the place of all others. */
function accountToolOf(server: ToolServer, account: AccountMissing): Found {
  return { server, item: accountTool(server, account), name: accountToolName, account };
}

/** Clients refuse lists that have a name twice, and with it those of all other servers. */
function firstOfEach(all: readonly Found[], of: string | undefined): Found[] {
  const names = new Set<string>();
  return all.filter(({ name }) => names.size < names.add(publicName(of, name)).size);
}

/** Undefined where the principal may not use it. */
function usable(
  server: ToolServer,
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
async function within<Value>(ms: number, work: Promise<Value>): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new GatewayError("upstream_timeout", `No list within ${ms} ms.`)), ms);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
