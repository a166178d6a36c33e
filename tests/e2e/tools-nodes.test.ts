// MCP servers at nodes of the network: what a machine behind a router offers is listed and called through the gateway.
import { afterEach, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { joinGateway } from "../../src/nodes/join-gateway.ts";
import { markedProcesses, markOf } from "../../src/processes/orphans.ts";
import { writeNodeIdentity } from "../../src/storage/files/node-files.ts";
import { until } from "../support/headrace.ts";
import { makeEverythingServer } from "../support/mcp/everything-server.ts";
import { startMcpServer } from "../support/mcp/mcp-server.ts";
import { stdioServer } from "../support/mcp/stdio-server.ts";
import { type ServerEntry, toolsYaml } from "../support/mcp/tool-world.ts";
import { type Gateway, joinNode, startGateway, type TestNode } from "../support/nodes.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

function held<Part extends AsyncDisposable>(part: Part): Part {
  stack.push(part);
  return part;
}

/** The gateway's `files` is the node's `own`. */
const atNode = { name: "files", node: { node: "gpu-1", server: "own" } };

const gatewayWith = async (...more: ServerEntry[]): Promise<Gateway> =>
  held(await startGateway({ yaml: toolsYaml([atNode, ...more]) }));

const ownYaml = (own: Omit<ServerEntry, "name">) => toolsYaml([{ name: "own", share: true, ...own }]);

const nodeOf = async (gateway: Gateway, own: Omit<ServerEntry, "name">): Promise<TestNode> =>
  held(await joinNode(gateway, { demo: true, models: ["*"], yaml: ownYaml(own) }));

const eras = ["legacy", "auto"] as const;

interface ClientOptions {
  mode?: (typeof eras)[number];
  path?: string;
}

async function clientOf(gateway: Gateway, { mode = "auto", path = "/mcp/files" }: ClientOptions = {}) {
  const made = await gateway.request("/v1/keys", { body: { name: "tools", scopes: ["tools:use"] } });
  const { key } = (await made.json()) as { key: string };
  const client = new Client(
    { name: "test", version: "1" },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } },
  );
  const headers = { authorization: `Bearer ${key}` };
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${gateway.url}${path}`), { requestInit: { headers } }),
  );
  held({ [Symbol.asyncDispose]: () => client.close() });
  return client;
}

const textOf = (result: Awaited<ReturnType<Client["callTool"]>>) => {
  const [block] = result.content;
  return block?.type === "text" ? block.text : "";
};
const namesOf = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name);
const facts = async (client: Client): Promise<{ pid: number; variables: Record<string, string> }> =>
  JSON.parse(textOf(await client.callTool({ name: "environment" })));
const isThere = (pid: number) => existsSync(`/proc/${pid}`);

async function useAll(client: Client): Promise<void> {
  expect(await namesOf(client)).toContain("test_simple_text");
  const progress: number[] = [];
  const onprogress = ({ progress: at }: { progress: number }) => void progress.push(at);
  await client.callTool({ name: "test_tool_with_progress" }, { onprogress });
  expect(progress).toEqual([0, 50, 100]);
  client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: { response: "Ulm" } }));
  const asked = await client.callTool({ name: "test_elicitation", arguments: { message: "Where?" } });
  expect(textOf(asked)).toContain("Ulm");
}

test.each(eras)(
  "lists and calls a process at a node with progress and elicitation, by %s clients",
  async (mode) => {
    const gateway = await gatewayWith();
    await nodeOf(gateway, { command: stdioServer });
    await useAll(await clientOf(gateway, { mode }));
    expect((await gateway.node("gpu-1"))?.tool_servers).toEqual([{ name: "own", title: null, kind: "command" }]);
  },
  30_000,
);

test.each(["legacy", "modern"] as const)(
  "calls an HTTP server in a node's network, of the %s era, with the node's credential and no client's",
  async (behind) => {
    const gateway = await gatewayWith();
    const server = held(startMcpServer(makeEverythingServer, { eras: behind }));
    await nodeOf(gateway, { url: server.url, headers: { "x-own": "of the node" } });
    for (const mode of eras) await useAll(await clientOf(gateway, { mode }));
    expect(server.requests.length).toBeGreaterThan(4);
    expect(new Set(server.requests.map(({ headers }) => headers.get("x-own")))).toEqual(new Set(["of the node"]));
    expect(server.requests.filter(({ headers }) => headers.has("authorization"))).toEqual([]);
    const text = JSON.stringify(server.requests.map(({ headers, body }) => [Object.fromEntries(headers), body]));
    expect(text).not.toContain(gateway.key.slice(0, 20));
    if (behind === "modern") return;
    // What a server says beside any call comes by a stream of its own.
    const client = await clientOf(gateway, { mode: "legacy" });
    let changes = 0;
    client.setNotificationHandler("notifications/tools/list_changed", () => void changes++);
    await namesOf(client);
    await until(() => {
      server.notifier.toolsChanged();
      return changes > 0;
    }, "the change came");
  },
  30_000,
);

test("runs separate processes at a node for two people, without its environment", async () => {
  const gateway = await gatewayWith();
  await nodeOf(gateway, { command: stdioServer });
  const [ann, ben] = [await facts(await clientOf(gateway)), await facts(await clientOf(gateway))];
  expect(ann.pid).not.toBe(ben.pid);
  expect(Object.keys(ann.variables).filter((name) => name.startsWith("HEADRACE_D"))).toEqual([]);
});

test("cancels a call whose client leaves at a node, and serves the next with the same process", async () => {
  const gateway = await gatewayWith();
  await nodeOf(gateway, { command: stdioServer });
  const client = await clientOf(gateway);
  const { pid } = await facts(client);
  const leaving = new AbortController();
  const call = client.callTool({ name: "silence" }, { signal: leaving.signal }).catch(() => "left");
  await Bun.sleep(100);
  leaving.abort();
  expect(await call).toBe("left");
  expect((await facts(client)).pid).toBe(pid);
});

test("fails the call of a crashed process at a node, and starts another for the next", async () => {
  const gateway = await gatewayWith();
  await nodeOf(gateway, { command: stdioServer });
  const client = await clientOf(gateway);
  const { pid } = await facts(client);
  await expect(client.callTool({ name: "crash" })).rejects.toThrow("at its node has ended");
  const next = await facts(client);
  expect(next.pid).not.toBe(pid);
  expect(isThere(pid)).toBe(false);
});

test("refuses a server that a node does not share, and says what to do", async () => {
  const gateway = await gatewayWith({ name: "other", node: { node: "gpu-2", server: "own" } });
  await nodeOf(gateway, { command: stdioServer, share: false });
  expect((await gateway.node("gpu-1"))?.tool_servers).toEqual([]);
  const client = await clientOf(gateway);
  await expect(client.callTool({ name: "environment" })).rejects.toThrow(/gpu-1 offers no MCP server.*share: true/);
  const other = await clientOf(gateway, { path: "/mcp/other" });
  await expect(other.callTool({ name: "environment" })).rejects.toThrow(/gpu-2 .* is not connected/);
});

test("refuses tools at a node that it does not offer, whatever the gateway asks", async () => {
  const gateway = await gatewayWith();
  await nodeOf(gateway, { command: stdioServer, tools: ["test_*"] });
  const client = await clientOf(gateway);
  expect(textOf(await client.callTool({ name: "test_simple_text" }))).not.toBe("");
  await expect(client.callTool({ name: "environment" })).rejects.toThrow("Unknown tool");
});

interface NodeProgram {
  dataDir: string;
  start(): Promise<ServerProcess>;
}

/** A node that is a program of its own, and is connected once it was started. */
async function nodeProgram(
  gateway: Gateway,
  own: Omit<ServerEntry, "name"> = { command: stdioServer },
): Promise<NodeProgram> {
  const home = mkdtempSync(join(tmpdir(), "headrace-tool-node-"));
  held({ [Symbol.asyncDispose]: async () => rmSync(home, { recursive: true, force: true }) });
  const [dataDir, config] = [join(home, "data"), join(home, "headrace.yaml")];
  writeFileSync(config, ownYaml(own));
  mkdirSync(dataDir);
  const { token } = await gateway.token([]);
  const signal = AbortSignal.timeout(10_000);
  writeNodeIdentity(dataDir, await joinGateway({ gatewayUrl: gateway.url, token, name: "gpu-1", signal }));
  return {
    dataDir,
    async start() {
      const started = held(await startServerProcess({ dataDir, config }));
      await until(async () => (await gateway.node("gpu-1"))?.status === "online", "the node is there", 10_000);
      return started;
    },
  };
}

/** How often a client that listens heard that there are other tools. */
async function listener(gateway: Gateway): Promise<{ client: Client; changes(): number }> {
  const client = await clientOf(gateway, { mode: "legacy", path: "/mcp?tools=all" });
  let changes = 0;
  client.setNotificationHandler("notifications/tools/list_changed", () => void changes++);
  return { client, changes: () => changes };
}

const hasFiles = async (client: Client) => (await namesOf(client)).some((name) => name.startsWith("files_"));

test("fails a killed node's call at once, leaves no process, and lists the node's tools again on return", async () => {
  const gateway = await gatewayWith({ name: "here", command: stdioServer });
  const program = await nodeProgram(gateway);
  const processes = () => markedProcesses(markOf(program.dataDir, ""));
  // Whoever came while it was away hears of it as well.
  const { client, changes } = await listener(gateway);
  expect(await hasFiles(client)).toBe(false);
  const first = await program.start();
  await until(() => changes() > 0, "the client hears that it is there");
  expect(await hasFiles(client)).toBe(true);

  const call = client.callTool({ name: "files_silence" }).catch((error: Error) => error.message);
  await until(() => processes().length > 0, "its process runs");
  await Bun.sleep(200);
  first.process.kill("SIGKILL");
  const killedAtMs = performance.now();
  expect(await call).toContain("was lost");
  expect(performance.now() - killedAtMs).toBeLessThan(5_000);
  await until(() => processes().length === 0, "its process is gone", 10_000);
  const away = await namesOf(client);
  expect(away.some((name) => name.startsWith("files_"))).toBe(false);
  expect(away.some((name) => name.startsWith("here_"))).toBe(true);

  await program.start();
  await until(() => hasFiles(client), "it is back");
}, 60_000);

test("finishes a stopped node's calls, and does not wait for idle processes", async () => {
  const gateway = await gatewayWith();
  const program = await nodeProgram(gateway);
  const node = await program.start();
  const [busy, idle] = [await clientOf(gateway), await clientOf(gateway)];
  await facts(idle);
  // At the first sign of progress there is a while to go.
  const begun = Promise.withResolvers<void>();
  const call = busy.callTool({ name: "test_tool_with_progress" }, { onprogress: () => begun.resolve() });
  await begun.promise;
  node.process.kill("SIGTERM");
  expect(textOf(await call)).not.toBe("");
  const stoppedAtMs = performance.now();
  await node.process.exited;
  expect(performance.now() - stoppedAtMs).toBeLessThan(10_000);
  await expect(idle.callTool({ name: "environment" })).rejects.toThrow("is not connected");
}, 60_000);

test.each([
  { behind: "a process of later revisions", mode: "legacy" },
  { behind: "a server over HTTP with sessions", mode: "legacy" },
  { behind: "a server over HTTP with sessions", mode: "auto" },
] as const)(
  "answers requests of $behind servers at a draining node by $mode clients, and then ends the node",
  async ({ behind, mode }) => {
    const gateway = await gatewayWith();
    const http = held(startMcpServer(makeEverythingServer, { eras: "legacy" }));
    const isProcess = behind === "a process of later revisions";
    const program = await nodeProgram(gateway, isProcess ? { command: stdioServer } : { url: http.url });
    const node = await program.start();
    const client = await clientOf(gateway, { mode });
    client.setRequestHandler("elicitation/create", async () => {
      node.process.kill("SIGTERM");
      await until(async () => (await gateway.node("gpu-1"))?.status !== "online", "the node drains");
      await Bun.sleep(200);
      return { action: "accept", content: { response: "Ulm" } };
    });
    const call = () => client.callTool({ name: "test_elicitation", arguments: { message: "Where?" } });
    expect(textOf(await call())).toContain("Ulm");
    const answeredAtMs = performance.now();
    await node.process.exited;
    expect(performance.now() - answeredAtMs).toBeLessThan(10_000);
    await expect(call()).rejects.toThrow("is not connected");
  },
  60_000,
);
