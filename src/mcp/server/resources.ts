// Resources of MCP servers, by their public URIs: reading, and subscriptions of listening clients.

import type { JsonObject } from "../../domain/tools/client-session.ts";
import type { McpServer, McpServers } from "../../domain/tools/mcp-server.ts";
import type { ServerCatalog } from "./catalog.ts";
import type { ClientCall } from "./client-call.ts";
import { maxUriLength, partsOfUri } from "./names.ts";
import { invalidParams, RpcError } from "./rpc-error.ts";
import type { ServerCalls } from "./server-calls.ts";
import { mayUseResources } from "./view.ts";

export class Resources {
  readonly #servers: Pick<McpServers, "find">;
  readonly #offers: ServerCatalog;
  readonly #calls: Pick<ServerCalls, "use" | "resumed">;

  constructor(servers: Pick<McpServers, "find">, offers: ServerCatalog, calls: Pick<ServerCalls, "use" | "resumed">) {
    this.#servers = servers;
    this.#offers = offers;
    this.#calls = calls;
  }

  /** Handles a client's request to read a resource, or to subscribe to or unsubscribe from its updates. */
  async ask(method: string, params: JsonObject, call: ClientCall): Promise<JsonObject> {
    const resumed = this.#calls.resumed(method, params["uri"], params, call);
    if (resumed) return await resumed;
    const { server, uri } = this.find(params["uri"], call);
    const use = () => this.#calls.use(method, server, uri, { ...params, uri }, call);
    const { subscriber } = call;
    if (!subscriber || method === "resources/read") return await use();
    await this.#offers.permit(call, method, uri, server);
    await this.#offers.open(server, call);
    if (method === "resources/unsubscribe") return subscriber.remove(server.name, uri) ? await use() : {};
    if (!subscriber.hasRoom) throw new RpcError(invalidParams, "As many resources are subscribed to as may be, 100.");
    if (!subscriber.add(server.name, uri)) return {};
    try {
      return await use();
    } catch (error) {
      subscriber.remove(server.name, uri);
      throw error;
    }
  }

  /** Subscribes a listening client to changes of all its servers, and to these resources. */
  async listen(uris: readonly unknown[], call: ClientCall): Promise<void> {
    await this.#offers.permit(call, "subscriptions/listen", null);
    const servers = this.#offers.serversOf(call);
    await Promise.allSettled(servers.map((server) => this.#offers.open(server, call)));
    await Promise.allSettled(uris.map((uri) => this.ask("resources/subscribe", { uri }, call)));
  }

  /**
   * Returns the server of a public URI, and the URI at that server. Throws if the principal may not use its resources.
   * The resource itself may be missing.
   */
  find(asked: unknown, { only, principal }: ClientCall): { server: McpServer; uri: string } {
    if (typeof asked !== "string" || asked.length > maxUriLength) {
      throw new RpcError(invalidParams, `uri must be a text of at most ${maxUriLength} characters.`);
    }
    const parts = only === undefined ? partsOfUri(asked) : { server: only, uri: asked };
    const server = parts && this.#servers.find(parts.server);
    if (!server || !mayUseResources(server, principal)) {
      throw new RpcError(invalidParams, `Unknown resource: ${asked.slice(0, 200)}`, { uri: asked });
    }
    return { server, uri: parts.uri };
  }
}
