// Tasks of 2025-11-25 and what servers say of themselves, through the gateway to a real server: those of the extension are in the official suite.
import { expect, test } from "bun:test";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { until } from "../../support/headrace.ts";
import { startMcpServer } from "../../support/mcp/mcp-server.ts";
import { TaskServers } from "../../support/mcp/task-server.ts";
import { startToolWorld } from "../../support/mcp/tool-world.ts";

type Json = Record<string, unknown>;

const anything = { "~standard": { version: 1, vendor: "test", validate: (value: unknown) => ({ value }) } } as const;

async function connect(url: string, key: string, mode: "legacy" | "auto" = "legacy") {
  const capabilities = { elicitation: { form: {} } };
  const client = new Client({ name: "test", version: "1" }, { capabilities, versionNegotiation: { mode } });
  const headers = { authorization: `Bearer ${key}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  return {
    client,
    ask: async (method: string, params: Json, signal?: AbortSignal) =>
      (await client.request({ method, params }, anything, signal && { signal })) as Json,
    [Symbol.asyncDispose]: () => client.close(),
  };
}

test("lets a task's creator await and cancel it in an earlier revision, and books one call", async () => {
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

test("hides tasks from clients of another revision and calls their tools directly", async () => {
  await using behind = startMcpServer(new TaskServers().make, { eras: "legacy" });
  await using world = await startToolWorld([{ name: "jobs", url: behind.url }]);
  await using own = await connect(world.at(), await world.key(), "auto");
  expect(own.client.getServerCapabilities()).toEqual({ tools: { listChanged: true } });
  const params = { name: "jobs_slow_compute", arguments: { seconds: 1, label: "it" } };
  expect(await own.ask("tools/call", params)).toMatchObject({ content: [{ type: "text", text: "it took 1 s." }] });
});

test.each(["legacy", "auto"] as const)(
  "runs a task-only tool of an earlier server, awaits and cancels it for %s clients without tasks",
  async (mode) => {
    const servers = new TaskServers();
    await using behind = startMcpServer(servers.make, { eras: "legacy" });
    await using world = await startToolWorld([{ name: "jobs", url: behind.url }]);
    await using own = await connect(world.at(), await world.key(), mode);
    own.client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: { name: "Ann" } }));
    const call = (name: string, signal?: AbortSignal) =>
      own.ask("tools/call", { name: `jobs_${name}`, arguments: {} }, signal);
    const failed = await call("failing_job");
    expect(failed).toMatchObject({ content: [{ type: "text", text: "It failed." }], isError: true });
    expect(JSON.stringify(failed)).not.toContain("related-task");
    expect(JSON.stringify(await call("sign_off"))).toContain("Ann");
    const leaving = new AbortController();
    const left = call("endless", leaving.signal).catch(() => "left");
    const endless = () => [...servers.tasks.values()].at(-1);
    await until(() => servers.tasks.size === 3, "it is made");
    await Bun.sleep(300);
    leaving.abort();
    expect(await left).toBe("left");
    await until(() => endless()?.status === "cancelled", "it is cancelled at its server");
    await until(async () => {
      const usage = await (await world.server.request("/v1/usage?group_by=model")).json();
      const counted = (usage.data as Json[]).map(({ model, requests }) => `${model} ${requests}`).sort();
      return Bun.deepEquals(counted, ["jobs/endless 1", "jobs/failing_job 1", "jobs/sign_off 1"]);
    }, "each is one call on the ledger");
  },
  30_000,
);
