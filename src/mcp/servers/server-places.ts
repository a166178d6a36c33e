// Watches the nodes at which servers of tools are: that one came or went is a change of what there is.
import { isPlaceThere, type ToolNodes } from "../../domain/tools/node-tools.ts";
import type { ToolServers } from "../../domain/tools/tool-server.ts";

export class ServerPlaces {
  readonly #servers: Pick<ToolServers, "all">;
  readonly #nodes: ToolNodes;
  readonly #listeners = new Set<() => void>();
  readonly #unlisten: () => void;
  #away: string;

  constructor(servers: Pick<ToolServers, "all">, nodes: ToolNodes) {
    this.#servers = servers;
    this.#nodes = nodes;
    this.#away = this.#awayNow();
    this.#unlisten = nodes.onChange(() => this.#look());
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
    this.#unlisten();
  }

  #look(): void {
    const away = this.#awayNow();
    if (away === this.#away) return;
    this.#away = away;
    for (const listener of [...this.#listeners]) listener();
  }

  #awayNow(): string {
    const away = this.#servers.all().filter((server) => !isPlaceThere(server, this.#nodes));
    return away.map(({ name }) => name).join(" ");
  }
}
