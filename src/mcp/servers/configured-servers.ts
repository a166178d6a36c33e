// The servers of tools that headrace.yaml names, as it is now.
import type { ToolServer, ToolServers } from "../../domain/tools/tool-server.ts";

export class ConfiguredServers implements ToolServers {
  readonly #current: () => readonly ToolServer[];
  readonly #listeners = new Set<() => void>();
  #seen: readonly ToolServer[];

  /** `current`: another list after each change of the file. */
  constructor(current: () => readonly ToolServer[]) {
    this.#current = current;
    this.#seen = current();
  }

  all(): readonly ToolServer[] {
    const all = this.#current();
    if (all === this.#seen) return all;
    this.#seen = all;
    for (const listener of this.#listeners) listener();
    return all;
  }

  find(name: string): ToolServer | undefined {
    return this.all().find((server) => server.name === name);
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}
