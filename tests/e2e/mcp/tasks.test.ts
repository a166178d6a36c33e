// Tasks of 2025-11-25 and what servers say of themselves, through the gateway to a real server: those of the extension are in the official suite.
import { expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { startMcpServer } from "../../support/mcp/mcp-server.ts";
import { TaskServers } from "../../support/mcp/task-server.ts";
import { startToolWorld } from "../../support/mcp/tool-world.ts";

type Json = Record<string, unknown>;

const anything = { "~standard": { version: 1, vendor: "test", validate: (value: unknown) => ({ value }) } } as const;

async function connect(url: string, key: string, mode: "legacy" | "auto" = "legacy") {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  const headers = { authorization: `Bearer ${key}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return {
    client,
    ask: async (method: string, params: Json) => (await client.request({ method, params }, anything)) as Json,
    [Symbol.asyncDispose]: () => client.close(),
  };
}

test("a task of an earlier revision is waited for and cancelled by who made it, and is one call on the ledger", async () => {
  await using behind = startMcpServer(new TaskServers().make, { eras: "legacy" });
  await using world = await startToolWorld([{ name: "jobs", url: behind.url }]);
  const [key, other] = [await world.key(), await world.key()];
  await using own = await connect(world.at(), key);
  await using stranger = await connect(world.at(), other);
  expect(own.client.getServerCapabilities()).toMatchObject({ tasks: { requests: { tools: { call: {} } } } });
  expect(own.client.getServerCapabilities()).not.toHaveProperty("prompts");
  const make = async (seconds: number) => {
    const params = { name: "jobs_slow_compute", arguments: { seconds, label: "it" }, task: { ttl: 60_000 } };
    const { task } = await own.ask("tools/call", params);
    return task as { taskId: string; status: string };
  };
  const { taskId, status } = await make(1);
  expect([taskId, status]).toEqual([expect.stringMatching(/^jobs\./), "working"]);
  expect(stranger.ask("tasks/get", { taskId })).rejects.toThrow("Unknown task");
  expect(await own.ask("tasks/get", { taskId })).toMatchObject({ taskId, status: "working" });
  expect(await own.ask("tasks/result", { taskId })).toMatchObject({
    content: [{ type: "text", text: "it took 1 s." }],
    _meta: { "io.modelcontextprotocol/related-task": { taskId } },
  });
  const long = await make(60);
  expect(await own.ask("tasks/cancel", { taskId: long.taskId })).toMatchObject({ status: "cancelled" });
  const usage = await (await world.server.request("/v1/usage?group_by=model")).json();
  expect(usage.data).toMatchObject([{ model: "jobs/slow_compute", requests: 2 }]);
});

test("who speaks another revision than the server is told of no tasks, and calls its tools as they are", async () => {
  await using behind = startMcpServer(new TaskServers().make, { eras: "legacy" });
  await using world = await startToolWorld([{ name: "jobs", url: behind.url }]);
  await using own = await connect(world.at(), await world.key(), "auto");
  expect(own.client.getServerCapabilities()).toEqual({ tools: { listChanged: true } });
  const params = { name: "jobs_slow_compute", arguments: { seconds: 1, label: "it" } };
  expect(await own.ask("tools/call", params)).toMatchObject({ content: [{ type: "text", text: "it took 1 s." }] });
});
