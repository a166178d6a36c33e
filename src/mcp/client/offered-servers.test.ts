// The responses of a node's MCP servers to a gateway: bounded, and from shared servers only.
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "../../../tests/support/data-directory.ts";
import { until } from "../../../tests/support/headrace.ts";
import { HttpMcpServer, mcpServerAt } from "../../../tests/support/mcp-servers.ts";
import { type BodySource, readAll } from "../../base/bytes/body-source.ts";
import { Cancellation } from "../../base/cancellation.ts";
import type { McpServer } from "../../domain/tools/mcp-server.ts";
import { sessionField } from "../../domain/tools/node-tools.ts";
import { markedProcesses, markOf } from "../../processes/orphans.ts";
import { OfferedServers } from "./offered-servers.ts";

const script = join(import.meta.dir, "..", "..", "..", "tests", "support", "tool-process.ts");

class OfferingNode implements AsyncDisposable {
  readonly dataDir = mkdtempSync(join(tmpdir(), "offered-"));
  servers: readonly McpServer[];
  readonly offered: OfferedServers;

  constructor(...servers: McpServer[]) {
    this.servers = servers;
    const options = { dataDir: this.dataDir, environment: {}, log: silentLog, stopMs: 500 };
    this.offered = new OfferedServers({ servers: () => this.servers, ...options });
  }

  ask(method: "GET" | "POST", { server = "files", session = "", body = "" } = {}) {
    const headers = { [sessionField]: session };
    return this.offered.handle({ requestId: "req_1", server, method, headers, body }, new Cancellation());
  }

  /** Starts a process, and returns its output. */
  async start(): Promise<{ session: string; body: BodySource; said(): string; how(): string }> {
    const { headers, body } = await this.ask("GET");
    let [said, how] = ["", "goes on"];
    body.flow({
      data: (piece) => {
        said += piece.text;
      },
      end: () => {
        how = "ended";
      },
      fail: () => {
        how = "failed";
      },
    });
    return { session: headers.get(sessionField) ?? "", body, said: () => said, how: () => how };
  }

  get processes(): number {
    return markedProcesses(markOf(this.dataDir, "")).length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.offered.shut();
    rmSync(this.dataDir, { recursive: true, force: true });
  }
}

const nodes: OfferingNode[] = [];
afterEach(async () => {
  for (const node of nodes.splice(0)) await node[Symbol.asyncDispose]();
});

function nodeWith(...servers: McpServer[]): OfferingNode {
  const node = new OfferingNode(...servers);
  nodes.push(node);
  return node;
}

const shared = (own: Partial<McpServer> = {}) =>
  mcpServerAt([process.execPath, script, "fine"], { name: "files", isShared: true, ...own });
const list = JSON.stringify({ jsonrpc: "2.0", id: "a", method: "ping" });

test("offers only servers that are shared, enabled, and neither at another node nor with user accounts", async () => {
  const person = { kind: "person", issuer: null, clientId: null, clientSecret: null, scopes: null } as const;
  const others: Partial<McpServer>[] = [
    { isShared: false },
    { enabled: false },
    { credentials: person },
    { place: { kind: "node", nodeId: "gpu-2", server: "files" } },
  ];
  const node = nodeWith(
    ...others.map((own, at) => shared({ name: `other-${at}`, ...own })),
    shared({ title: "Files" }),
  );
  expect(node.offered.offers()).toEqual([{ name: "files", title: "Files", kind: "command" }]);
  for (const server of ["other-0", "other-1", "other-2", "other-3", "nothing"]) {
    await expect(node.ask("GET", { server })).rejects.toMatchObject({ code: "not_found" });
  }
});

test("runs a process while its output is read, and leaves nothing behind", async () => {
  const node = nodeWith(shared());
  const { session, body, said, how } = await node.start();
  const { status } = await node.ask("POST", { session, body: list });
  expect(status).toBe(202);
  await until(() => said().includes('"id":"a"'), "it answered");
  expect((await node.ask("POST", { session: "another", body: list })).status).toBe(404);
  body.cancel();
  await until(() => node.processes === 0, "it is gone");
  const isForgotten = async () =>
    (await node.ask("POST", { session, body: list }).catch(() => undefined))?.status === 404;
  await until(isForgotten, "and so is what was known of it");
  expect(how()).toBe("goes on");
  expect(readdirSync(join(node.dataDir, "offered-tool-processes"))).toEqual([]);
});

test("ends the process of a changed server, and accepts no more messages for it", async () => {
  const node = nodeWith(shared());
  const { session, how } = await node.start();
  node.servers = [shared({ tools: ["text"] })];
  expect((await node.ask("POST", { session, body: list })).status).toBe(404);
  await until(() => node.processes === 0 && how() !== "goes on", "it is gone");
});

test("ends a server that is no longer shared, although the gateway still listens", async () => {
  await using http = new HttpMcpServer();
  const node = nodeWith(shared(), mcpServerAt(http.url, { name: "remote", isShared: true }));
  const { how } = await node.start();
  const { body } = await node.ask("POST", { server: "remote", body: list });
  body.cancel();
  await until(() => node.processes > 0, "it runs");
  node.offered.reconfigured();
  await Bun.sleep(100);
  expect(how()).toBe("goes on");
  node.servers = [];
  node.offered.reconfigured();
  await until(() => node.processes === 0 && how() !== "goes on", "it is gone");
});

test("bounds the processes for the gateway, and starts another after one has ended", async () => {
  const node = nodeWith(shared());
  // No process runs before its output is read.
  const bodies = await Promise.all(Array.from({ length: 16 }, async () => (await node.ask("GET")).body));
  await expect(node.ask("GET")).rejects.toMatchObject({ code: "service_unavailable" });
  bodies[0]?.cancel();
  await until(async () => (await node.ask("GET").catch(() => undefined)) !== undefined, "there is room");
});

test("refuses invalid messages and unoffered tools without passing them to the process", async () => {
  const node = nodeWith(shared({ tools: ["where"] }));
  const { session, said } = await node.start();
  const call = { jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "child" } };
  for (const body of ["{", JSON.stringify(call), `[${JSON.stringify(call)}]`]) {
    const answer = await node.ask("POST", { session, body });
    expect([answer.status, (await readAll(answer.body, 10, new Cancellation(), () => {})).length]).toEqual([202, 0]);
  }
  const codes = said()
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).error.code);
  expect(codes).toEqual([-32_700, -32_602, -32_602]);
});

// hardening: F15
test.each([
  [
    "a name in another case",
    '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"where","Name":"child"}}',
    -32_600,
  ],
  [
    "params in another case",
    '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"where"},"Params":{"name":"child"}}',
    -32_600,
  ],
  [
    "a method in another case",
    '{"jsonrpc":"2.0","id":7,"method":"ping","METHOD":"tools/call","params":{"name":"child"}}',
    -32_600,
  ],
  ["a name twice", '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"child","name":"where"}}', -32_700],
  [
    "an escaped name twice",
    '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"n\\u0061me":"child","name":"where"}}',
    -32_700,
  ],
  ["a name in a list", '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":["where"]}}', -32_602],
])("refuses a call with %s without passing it to the process", async (_, body, code) => {
  const node = nodeWith(shared({ tools: ["where"] }));
  const { session, said } = await node.start();
  await node.ask("POST", { session, body });
  expect(JSON.parse(said().trim()).error.code).toBe(code);
});

test("fails messages instead of queueing refusals while the gateway reads no output", async () => {
  const node = nodeWith(shared({ tools: ["where"] }));
  const { session, body, said } = await node.start();
  const call = JSON.stringify({ jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "child" } });
  body.pause();
  await expect(node.ask("POST", { session, body: call })).rejects.toMatchObject({ code: "service_unavailable" });
  expect(said()).toBe("");
  body.resume();
  expect((await node.ask("POST", { session, body: call })).status).toBe(202);
  expect(said()).toContain("Unknown tool: child");
});

test("reports an unreachable HTTP server without its address", async () => {
  const node = nodeWith(mcpServerAt("http://127.0.0.1:9/mcp", { name: "files", isShared: true }));
  const asked = node.ask("POST", { body: list });
  await expect(asked).rejects.toMatchObject({
    code: "upstream_error",
    message: 'The MCP server "files" of this node cannot be reached.',
    detail: "connect",
  });
});

/** Returns the status of the response to a message for a server at `url`. */
async function statusAt(url: string): Promise<number> {
  const credentials = { kind: "headers", headers: { "X-Own": "of the node" } } as const;
  const node = nodeWith(mcpServerAt(url, { name: "files", isShared: true, credentials }));
  const { status, body } = await node.ask("POST", { body: list });
  body.cancel();
  return status;
}

test("follows up to five redirects within the server's origin, with message and headers", async () => {
  await using server = new HttpMcpServer({
    before: ({ url }) => {
      const step = Number(new URL(url).searchParams.get("step"));
      if (step === 5) return new Response(null, { status: 204 });
      return new Response(null, { status: 307, headers: { location: `/mcp?step=${step + 1}` } });
    },
  });
  expect(await statusAt(server.url)).toBe(204);
  expect(server.requests.map(({ body, headers }) => [body["id"], headers.get("x-own")])).toEqual(
    Array.from({ length: 6 }, () => ["a", "of the node"]),
  );
  await using endless = new HttpMcpServer({
    before: () => new Response(null, { status: 308, headers: { location: "/mcp" } }),
  });
  expect(await statusAt(endless.url)).toBe(308);
  expect(endless.requests.length).toBe(6);
});

test("follows no redirect that leads to another origin or changes the method", async () => {
  await using inside = new HttpMcpServer();
  const { port } = new URL(inside.url);
  const elsewhere = [inside.url, `//127.0.0.1:${port}/mcp`, "http://[", "http://someone@HERE/mcp"];
  for (const [status, location] of [...elsewhere.map((to) => [307, to] as const), [302, "/mcp"] as const]) {
    await using server = new HttpMcpServer({
      before: ({ url }) =>
        new Response(null, { status, headers: { location: location.replace("HERE", new URL(url).host) } }),
    });
    expect(await statusAt(server.url)).toBe(status);
    expect(server.requests.length).toBe(1);
  }
  expect(inside.requests).toEqual([]);
});
