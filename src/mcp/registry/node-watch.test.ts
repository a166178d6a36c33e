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
  received = 0;
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
    places.onChange(() => this.received++);
  }

  add(server: McpServer): void {
    this.servers = [...this.servers, server];
    for (const listener of this.#serverListeners) listener();
  }

  /** Replaces the node, and returns how many notifications followed. */
  becomes(now: ToolNode | undefined): number {
    const before = this.received;
    this.node = now;
    for (const listener of this.#nodeListeners) listener();
    return this.received - before;
  }
}

test("reports connects and disconnects of a node whose server was added while it was away", () => {
  const world = new World();
  world.add(atNode);
  expect(world.becomes(node())).toBe(1);
  expect(world.becomes(node())).toBe(0);
  expect(world.becomes(undefined)).toBe(1);
});

test("reports a replaced node of the same name, and a changed kind of its server", () => {
  const world = new World(atNode);
  world.becomes(node());
  expect(world.becomes(node({ id: "node_2" }))).toBe(1);
  expect(world.becomes(node({ id: "node_2", offers: [{ name: "own", title: null, kind: "command" }] }))).toBe(1);
});

test("ignores changes of a node that do not concern used servers", () => {
  const world = new World(atNode);
  world.becomes(node());
  const offers = [...node().offers, { name: "another", title: null, kind: "http" as const }];
  expect(world.becomes(node({ offers }))).toBe(0);
});
