// Notifications about nodes that connect, disconnect and are replaced.
import { expect, test } from "bun:test";
import { mcpServerAt } from "../../../tests/support/mcp-servers.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";
import type { ToolNode } from "../../domain/tools/node-tools.ts";
import { NodeWatch } from "./node-watch.ts";

const node = (own: Partial<ToolNode> = {}): ToolNode => ({
  ...{ id: "node_1", name: "gpu-1", isThere: true, isLocal: false },
  offers: [{ name: "own", title: null, kind: "http" }],
  ...own,
});
const atNode: McpServer = {
  ...mcpServerAt("http://unused/", { name: "files" }),
  place: { kind: "node", nodeId: "gpu-1", server: "own" },
};

class World {
  servers: readonly McpServer[] = [];
  node: ToolNode | undefined;
  told = 0;
  readonly #serverListeners: (() => void)[] = [];
  readonly #nodeListeners: (() => void)[] = [];

  constructor(...servers: McpServer[]) {
    this.servers = servers;
    const listen = (listeners: (() => void)[]) => (listener: () => void) => {
      listeners.push(listener);
      return () => {};
    };
    const places = new NodeWatch(
      { all: () => this.servers, onChange: listen(this.#serverListeners) },
      {
        find: (asked) => (this.node && [this.node.id, this.node.name].includes(asked) ? this.node : undefined),
        send: () => Promise.reject(new Error("Nobody is asked here.")),
        onChange: listen(this.#nodeListeners),
      },
    );
    places.onChange(() => this.told++);
  }

  add(server: McpServer): void {
    this.servers = [...this.servers, server];
    for (const listener of this.#serverListeners) listener();
  }

  /** Replaces the node, and returns how many notifications followed. */
  becomes(now: ToolNode | undefined): number {
    const before = this.told;
    this.node = now;
    for (const listener of this.#nodeListeners) listener();
    return this.told - before;
  }
}

test("the node of a server that was added while it was away is told of once it comes, and once it goes", () => {
  const world = new World();
  world.add(atNode);
  expect(world.becomes(node())).toBe(1);
  expect(world.becomes(node())).toBe(0);
  expect(world.becomes(undefined)).toBe(1);
});

test("another machine that has the name of the node by now is told of, and so is another kind of server there", () => {
  const world = new World(atNode);
  world.becomes(node());
  expect(world.becomes(node({ id: "node_2" }))).toBe(1);
  expect(world.becomes(node({ id: "node_2", offers: [{ name: "own", title: null, kind: "command" }] }))).toBe(1);
});

test("what a node has beside the servers that are used of it is nobody's news", () => {
  const world = new World(atNode);
  world.becomes(node());
  const offers = [...node().offers, { name: "another", title: null, kind: "http" as const }];
  expect(world.becomes(node({ offers }))).toBe(0);
});
