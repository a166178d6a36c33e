// `headrace node` and `headrace nodes` as people use them: a token, the command that it comes with, approval, and leaving again.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "../support/headrace.ts";
import { ask, endless, model, reading } from "../support/node-requests.ts";
import { connected, type Gateway, startGateway } from "../support/nodes.ts";
import { makeWorkspace, type Program, startProgram, type Workspace } from "../support/program.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
let gateway: Gateway;
let upstream: ScriptedUpstream;
let machine: Workspace;

beforeAll(async () => {
  gateway = await startGateway();
  upstream = await startUpstream();
  machine = makeWorkspace();
  writeFileSync(join(machine.directory, "headrace.yaml"), upstreamYaml(upstream));
  stack.push(gateway, upstream, machine);
});

afterAll(async () => {
  for (const part of stack.reverse()) await part[Symbol.asyncDispose]();
});

/** Runs a command as the operator, who works elsewhere. */
async function operator(...args: string[]): Promise<{ code: number; stdout: string; stderr: string }> {
  await using place = makeWorkspace();
  const env = { HEADRACE_BASE_URL: gateway.baseUrl, HEADRACE_API_KEY: gateway.operator };
  const program = startProgram(place, args, env);
  const code = await program.exitCode();
  return { code, stdout: program.stdout(), stderr: program.stderr() };
}

/** At the machine: what serves has the flags that `headrace serve` gets in tests. */
function atMachine(args: readonly string[]): Program {
  const own = ["--data-dir", machine.dataDir];
  const serving = args[1] === "join" ? ["--port", "0", "--no-discover-local", "--no-demo"] : [];
  const program = startProgram(machine, [...args, ...own, ...serving]);
  stack.push(program);
  return program;
}

const nodeFile = () => join(machine.dataDir, "node.json");

test("makes a node by the printed command, which serves approved models and drains when stopped", async () => {
  const made = await operator("nodes", "token", "--expires", "10m");
  expect(made.code).toBe(0);
  expect(made.stderr).toContain("in 10 min");
  const command = made.stdout.trim().split(" ");
  expect(command.slice(0, 4)).toEqual(["headrace", "node", "join", gateway.url]);
  const node = atMachine([...command.slice(1), "--name", "gpu-1"]);
  await connected(gateway, "gpu-1", 30_000);
  await until(() => node.stderr().includes("waiting for approval"), "the node says what it waits for");
  expect(statSync(nodeFile()).mode & 0o777).toBe(0o600);
  expect((await operator("nodes")).stdout).toMatch(/gpu-1 +pending +1 not approved/);

  const approved = await operator("nodes", "approve", "gpu-1", model);
  expect(approved.stdout.trim()).toBe(`gpu-1 offers ${model}.`);
  await until(() => node.stderr().includes("1 approved"), "the node says that it was approved");
  const status = atMachine(["node", "status"]);
  expect(await status.exitCode()).toBe(0);
  expect(status.stdout()).toContain(`${model} (approved)`);
  expect(status.stdout()).not.toContain(JSON.parse(readFileSync(nodeFile(), "utf8")).private_key);

  const { script, release } = endless();
  upstream.script(script);
  const answer = await reading(await ask(gateway, { stream: true }), 3);
  node.signal("SIGTERM");
  await until(async () => (await gateway.node("gpu-1"))?.status === "draining", "it takes nothing new");
  expect((await ask(gateway)).status).toBe(503);
  release();
  expect(await answer.whole).toEndWith("data: [DONE]\n\n");
  expect(await node.exitCode()).toBe(0);
}, 60_000);

test("reconnects a joined machine on serve, refuses a second join, and disconnects on leave", async () => {
  const again = atMachine(["node", "join", gateway.url, "--token", "hrn_unused"]);
  expect(await again.exitCode()).toBe(1);
  expect(again.stderr()).toContain("headrace node leave");
  const server = startProgram(machine, ["serve", "--no-demo"]);
  stack.push(server);
  await connected(gateway, "gpu-1", 30_000);
  const left = atMachine(["node", "leave", "--yes"]);
  expect(await left.exitCode()).toBe(0);
  expect(existsSync(nodeFile())).toBe(false);
  await until(async () => (await gateway.node("gpu-1"))?.status === "offline", "it has disconnected");
  const status = atMachine(["node", "status"]);
  expect(await status.exitCode()).toBe(1);

  // The server goes on meanwhile: joining is all that the command has to do.
  const { stdout: token } = await operator("nodes", "token", "--all-models", "--quiet");
  const joined = atMachine(["node", "join", gateway.url, "--token", token.trim(), "--name", "gpu-2"]);
  expect(await joined.exitCode(30_000)).toBe(0);
  expect(joined.stderr()).toContain("A Headrace runs here already");
  expect(joined.stdout()).toContain("Connected.");
  expect((await connected(gateway, "gpu-2")).status).toBe("online");
  expect((await operator("nodes", "mark-local", "gpu-2")).stdout).toBe("gpu-2 is marked as local.\n");
  expect((await operator("nodes")).stdout).toMatch(/gpu-2 .* yes /);
  expect((await operator("nodes", "unmark-local", "gpu-2")).stdout).toContain("is not marked as local");
  expect((await operator("nodes", "drain", "gpu-2")).stdout).toContain("gets nothing new");
  expect((await operator("nodes", "undrain", "gpu-2")).stdout).toContain("gets requests again");
  server.signal("SIGTERM");
  await server.exitCode();
}, 60_000);

test("exits with an error for a removed node, and leaves nothing behind after a refused token", async () => {
  const joining = atMachine(["node", "leave", "--yes"]);
  expect(await joining.exitCode()).toBe(0);
  const wrong = atMachine(["node", "join", gateway.url, "--token", "hrn_wrong"]);
  expect(await wrong.exitCode()).toBe(1);
  expect(wrong.stderr()).toContain("lets nobody in");
  expect(existsSync(nodeFile())).toBe(false);
  const { stdout: token } = await operator("nodes", "token", "--quiet");
  const node = atMachine(["node", "join", gateway.url, "--token", token.trim(), "--name", "gpu-3"]);
  await connected(gateway, "gpu-3", 30_000);
  expect((await operator("nodes", "remove", "gpu-3", "--yes")).stdout.trim()).toBe("gpu-3 is removed.");
  expect(await node.exitCode()).toBe(1);
  expect(node.stderr()).toContain("join again with a new token");
}, 60_000);

test("keeps the token for a read-only data directory, and hides a proxy's password", async () => {
  const { stdout: made } = await operator("nodes", "token", "--quiet");
  const join = ["node", "join", gateway.url, "--token", made.trim(), "--name", "gpu-4"];
  const nowhere = startProgram(machine, [...join, "--data-dir", "/proc/none/data"]);
  expect(await nowhere.exitCode()).toBe(1);
  expect(nowhere.stderr().trim()).toBe("error: /proc/none/data cannot be written (ENOENT).");
  expect(await gateway.node("gpu-4")).toBeUndefined();

  expect(await atMachine(["node", "leave", "--yes"]).exitCode()).toBe(0);
  const node = atMachine(join);
  await connected(gateway, "gpu-4", 30_000);
  node.signal("SIGTERM");
  await node.exitCode();
  const identity = JSON.parse(readFileSync(nodeFile(), "utf8")) as Record<string, unknown>;
  writeFileSync(nodeFile(), JSON.stringify({ ...identity, proxy: "http://user:hunter2@proxy.example:3128" }));
  const status = atMachine(["node", "status", "--json"]);
  await status.exitCode();
  expect(JSON.parse(status.stdout())).toMatchObject({ node: { name: "gpu-4", proxy: "http://proxy.example:3128" } });
  expect(status.stdout() + status.stderr()).not.toContain("hunter2");
}, 60_000);
