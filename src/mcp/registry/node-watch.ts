// Notices when a node with MCP servers connects, disconnects or is replaced, because that changes the available
// servers.

import type { McpServers } from "../../domain/tools/mcp-server.ts";
import { nodeRouteOf, type ToolNodes } from "../../domain/tools/node-tools.ts";

export class NodeWatch {
  readonly #servers: Pick<McpServers, "all" | "onChange">;
  readonly #nodes: ToolNodes;
  readonly #listeners = new Set<() => void>();
  readonly #unlisten: readonly (() => void)[];
  #routes: string;

  constructor(servers: Pick<McpServers, "all" | "onChange">, nodes: ToolNodes) {
    this.#servers = servers;
    this.#nodes = nodes;
    this.#routes = this.#currentRoutes();
    // Check when servers change, so that a new server whose node is disconnected counts as unavailable.
    this.#unlisten = [nodes, servers].map((one) => one.onChange(() => this.#check()));
  }

  /** Calls `listener` when a server's node has connected or disconnected. Returns a function that unsubscribes. */
  onChange(listener: () => void): () => void {
    // A separate entry for each registration, even if the same function is registered twice.
    const entry = () => listener();
    this.#listeners.add(entry);
    return () => this.#listeners.delete(entry);
  }

  /** Stops watching. */
  close(): void {
    for (const unlisten of this.#unlisten) unlisten();
  }

  #check(): void {
    const routes = this.#currentRoutes();
    if (routes === this.#routes) return;
    this.#routes = routes;
    for (const listener of [...this.#listeners]) listener();
  }

  #currentRoutes(): string {
    const servers = this.#servers.all();
    return JSON.stringify(servers.map((server) => [server.name, nodeRouteOf(server, this.#nodes) ?? null]));
  }
}
