// The servers of tools as clients see them: that the node of one came or went is a change of what there is.
import { isPlaceThere, type ToolNodes } from "../../domain/tools/node-tools.ts";
import type { ToolServer, ToolServers } from "../../domain/tools/tool-server.ts";

export class PlacedServers implements ToolServers {
  readonly #servers: ToolServers;
  readonly #nodes: ToolNodes;
  readonly #listeners = new Set<() => void>();
  readonly #stops: readonly (() => void)[];
  #away: string;

  constructor(servers: ToolServers, nodes: ToolNodes) {
    this.#servers = servers;
    this.#nodes = nodes;
    this.#away = this.#awayNow();
    this.#stops = [servers.onChange(() => this.#changed()), nodes.onChange(() => this.#looked())];
  }

  all(): readonly ToolServer[] {
    return this.#servers.all();
  }

  find(name: string): ToolServer | undefined {
    return this.#servers.find(name);
  }

  onChange(listener: () => void): () => void {
    // Each has its own entry, also where the same function is given twice.
    const entry = () => listener();
    this.#listeners.add(entry);
    return () => this.#listeners.delete(entry);
  }

  /** Hears of nothing any more. */
  close(): void {
    for (const stop of this.#stops) stop();
  }

  #looked(): void {
    if (this.#awayNow() !== this.#away) this.#changed();
  }

  #changed(): void {
    this.#away = this.#awayNow();
    for (const listener of [...this.#listeners]) listener();
  }

  #awayNow(): string {
    const away = this.#servers.all().filter((server) => !isPlaceThere(server, this.#nodes));
    return away.map(({ name }) => name).join(" ");
  }
}
