// Servers of tools at nodes of the network: what a machine behind a router offers is listed and called through the gateway.
import { afterEach, expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { until } from "../support/headrace.ts";
import { makeEverythingServer } from "../support/mcp/everything-server.ts";
import { startMcpServer } from "../support/mcp/mcp-server.ts";
import { stdioServer } from "../support/mcp/stdio-server.ts";
import { type ServerEntry, toolsYaml } from "../support/mcp/tool-world.ts";
import { type Gateway, joinNode, startGateway, type TestNode } from "../support/nodes.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

function held<Part extends AsyncDisposable>(part: Part): Part {
  stack.push(part);
  return part;
}

interface World {
  gateway: Gateway;
  node: TestNode;
}

const atNode = { name: "files", node: { node: "gpu-1", server: "own" } };

/** The gateway's `files` is the node's `own`. */
async function network(own: Omit<ServerEntry, "name">, entry: Partial<ServerEntry> = {}): Promise<World> {
  const gateway = held(await startGateway({ yaml: toolsYaml([{ ...atNode, ...entry }]) }));
  const yaml = toolsYaml([{ name: "own", share: true, ...own }]);
  const node = held(await joinNode(gateway, { demo: true, models: ["*"], yaml }));
  return { gateway, node };
}

const eras = ["legacy", "auto"] as const;

async function clientOf(gateway: Gateway, mode: (typeof eras)[number] = "auto", path = "/mcp/files"): Promise<Client> {
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
const facts = async (client: Client) =>
  JSON.parse(textOf(await client.callTool({ name: "environment" }))) as {
    pid: number;
    variables: Record<string, string>;
  };

for (const mode of eras) {
  test(`a process at the node is listed, called, tells of its progress, and asks back (${mode})`, async () => {
    const { gateway } = await network({ command: stdioServer });
    const client = await clientOf(gateway, mode);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain("test_simple_text");
    const progress: number[] = [];
    await client.callTool(
      { name: "test_tool_with_progress" },
      { onprogress: ({ progress: at }) => void progress.push(at) },
    );
    expect(progress).toEqual([0, 50, 100]);
    client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: { response: "Ulm" } }));
    const asked = await client.callTool({ name: "test_elicitation", arguments: { message: "Where?" } });
    expect(textOf(asked)).toContain("Ulm");
  }, 30_000);
}
