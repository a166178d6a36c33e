// Sessions with MCP servers at nodes: full and replaced nodes, and the start and end of processes.
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "../../../tests/support/data-directory.ts";
import { until } from "../../../tests/support/headrace.ts";
import { callerOf, LinkWorld, textOf } from "../../../tests/support/link-world.ts";
import { HttpMcpServer, mcpServerAt, textResult } from "../../../tests/support/mcp-servers.ts";
import { GatewayError } from "../../base/errors.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";
import type { ToolNodes } from "../../domain/tools/node-tools.ts";
import { markedProcesses, markOf } from "../../processes/orphans.ts";
import { OfferedServers } from "./offered-servers.ts";

const script = join(import.meta.dir, "..", "..", "..", "tests", "support", "tool-process.ts");
const program = [process.execPath, script, "fine"] as const;

/** A node without its tunnel. */
class Node implements ToolNodes, AsyncDisposable {
  id = "node_1";
  isLocal = false;
  maxProcesses = Number.POSITIVE_INFINITY;
  server: McpServer;
  readonly #dataDir = mkdtempSync(join(tmpdir(), "node-links-"));
  readonly #offered = new OfferedServers({
    ...{ servers: () => [this.server], dataDir: this.#dataDir, environment: {}, log: silentLog, stopMs: 500 },
  });

  constructor(place: string | readonly [string, ...string[]]) {
    this.server = mcpServerAt(place, { name: "own", isShared: true });
  }

  get processes(): readonly number[] {
    return markedProcesses(markOf(this.#dataDir, ""));
  }

  find() {
    return { id: this.id, name: "gpu-1", isThere: true, isLocal: this.isLocal, offers: this.#offered.offers() };
  }

  async send(_: string, ...[request, cancellation]: Parameters<OfferedServers["handle"]>) {
    if (request.method === "GET" && this.processes.length >= this.maxProcesses)
      throw new GatewayError("service_unavailable", "The node takes no more for now.", { retryAfterSeconds: 2 });
    return await this.#offered.handle(request, cancellation);
  }

  onChange(): () => void {
    return () => {};
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#offered.shut();
    rmSync(this.#dataDir, { recursive: true, force: true });
  }
}

const atNode: McpServer = {
  ...mcpServerAt("http://unused/"),
  place: { kind: "node", nodeId: "gpu-1", server: "own" },
};

test("ends an idle process at a full node, so that the next caller gets its slot", async () => {
  await using node = new Node(program);
  await using world = new LinkWorld({ nodes: node });
  node.maxProcesses = 1;
  await world.call(atNode, "where", { key: "key_1" });
  await expect(world.call(atNode, "where", { key: "key_2" })).rejects.toMatchObject({ code: "service_unavailable" });
  await until(() => node.processes.length === 0, "the one that is idle has made room");
  await world.call(atNode, "where", { key: "key_2" });
});

test("reconnects to a node's server that changed from HTTP to a program", async () => {
  await using http = new HttpMcpServer({ tools: { where: async () => textResult("over HTTP") } });
  await using node = new Node(http.url);
  await using world = new LinkWorld({ nodes: node });
  expect(textOf(await world.call(atNode, "where"))).toBe("over HTTP");
  node.server = mcpServerAt(program, { name: "own", isShared: true });
  world.links.nodesChanged();
  expect(JSON.parse(textOf(await world.call(atNode, "where"))).pid).toBeGreaterThan(0);
});

test("starts a new process after another machine took the node's name", async () => {
  await using node = new Node(program);
  await using world = new LinkWorld({ nodes: node });
  const before = JSON.parse(textOf(await world.call(atNode, "where"))).pid;
  node.id = "node_2";
  world.links.nodesChanged();
  expect(JSON.parse(textOf(await world.call(atNode, "where"))).pid).not.toBe(before);
});

test("sends local-only requests to a node's server only after the node is marked as local", async () => {
  await using node = new Node(program);
  await using world = new LinkWorld({ nodes: node });
  const principal = { ...callerOf("key_1"), modelAccess: { models: [], neverLeaves: true } };
  const open = () => world.links.open({ ...atNode, local: true }, { principal });
  await expect(open()).rejects.toThrow(/gpu-1, which is not marked as local.*mark-local gpu-1/);
  expect(node.processes).toEqual([]);
  node.isLocal = true;
  expect((await open()).serverInfo["name"]).toBeString();
});
