// Watches the nodes at which MCP servers are: that one came, went or was replaced is a change of what there is.

import type { McpServers } from "../../domain/tools/mcp-server.ts";
import { standingOf, type ToolNodes } from "../../domain/tools/node-tools.ts";

export class NodeWatch {
  readonly #servers: Pick<McpServers, "all" | "onChange">;
  readonly #nodes: ToolNodes;
  readonly #listeners = new Set<() => void>();
  readonly #unlisten: readonly (() => void)[];
  #standing: string;

  constructor(servers: Pick<McpServers, "all" | "onChange">, nodes: ToolNodes) {
    this.#servers = servers;
    this.#nodes = nodes;
    this.#standing = this.#standingNow();
    // A server that is added while its node is away has to be known as that, or its coming would be no change.
    this.#unlisten = [nodes, servers].map((one) => one.onChange(() => this.#look()));
  }

  /** Calls `listener` after the node of a server came or went; gives what ends that. */
  onChange(listener: () => void): () => void {
    // Each has its own entry, also where the same function is given twice.
    const entry = () => listener();
    this.#listeners.add(entry);
    return () => this.#listeners.delete(entry);
  }

  /** Hears of nothing any more. */
  close(): void {
    for (const unlisten of this.#unlisten) unlisten();
  }

  #look(): void {
    const standing = this.#standingNow();
    if (standing === this.#standing) return;
    this.#standing = standing;
    for (const listener of [...this.#listeners]) listener();
  }

  #standingNow(): string {
    const servers = this.#servers.all();
    return JSON.stringify(servers.map((server) => [server.name, standingOf(server, this.#nodes) ?? null]));
  }
}
