// Nodes of several replicas: a request reaches a node whichever of them holds its connection, and they agree on what holds.
import { afterEach, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { createServer } from "node:net";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AccountMemory, bufferedBytes } from "../../src/base/bytes/buffered-bytes.ts";
import { systemClock } from "../../src/base/clock.ts";
import { bodyDigest, signForward } from "../../src/nodes/forward-signature.ts";
import { aboutText, forwardHeaders, readError } from "../../src/nodes/forward-wire.ts";
import { deriveKey } from "../../src/storage/files/secret-file.ts";
import { head, openRaw, type RawConnection } from "../hostile/raw-client.ts";
import { startHeadrace, until } from "../support/headrace.ts";
import { stdioServer } from "../support/mcp/stdio-server.ts";
import { toolsYaml } from "../support/mcp/tool-world.ts";
import { ask, endless, messages, model, reading, usageRow } from "../support/node-requests.ts";
import { connected, type Gateway, type JoinOptions, joinNode, operate, type TestNode } from "../support/nodes.ts";
import { freshDatabase, sharedPostgres } from "../support/postgres.ts";
import { type Script, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";

const stack: AsyncDisposable[] = [];
beforeAll(() => sharedPostgres(), 60_000);
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

async function started<Part extends AsyncDisposable>(part: Promise<Part>): Promise<Part> {
  const ready = await part;
  stack.push(ready);
  return ready;
}

const secretHex = randomBytes(32).toString("hex");
const publicUrl = "https://ai.example.com";

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

interface World {
  /** The node's connection is at `one`. */
  one: Gateway;
  other: Gateway;
  node: TestNode;
  upstream: ScriptedUpstream;
  wire: Awaited<ReturnType<typeof startTcpProxy>>;
}

async function replica(
  databaseUrl: string,
  options: { advertises?: string | null; key?: string } = {},
): Promise<Gateway> {
  const port = await freePort();
  const { advertises = `http://127.0.0.1:${port}`, key } = options;
  const server = await startHeadrace({
    flags: { mode: "production", publicUrl, port: String(port) },
    env: {
      HEADRACE_DATABASE_URL: databaseUrl,
      HEADRACE_SECRET: secretHex,
      ...(advertises === null ? {} : { HEADRACE_ADVERTISE_URL: advertises }),
    },
  });
  const gateway = await operate(server, secretHex);
  if (key === undefined) return gateway;
  const request: Gateway["request"] = (path, init = {}) =>
    gateway.request(path, { ...init, headers: { authorization: `Bearer ${key}`, ...init.headers } });
  return { ...gateway, key, request };
}

async function network(options: JoinOptions & { script?: Script; advertises?: string | null } = {}): Promise<World> {
  const { script, advertises, ...join } = options;
  const databaseUrl = await freshDatabase();
  const upstream = await started(startUpstream(script));
  const one = await started(replica(databaseUrl, advertises === undefined ? {} : { advertises }));
  const other = await started(replica(databaseUrl, { key: one.key }));
  const wire = await started(startTcpProxy(one.port));
  const yaml = upstreamYaml(upstream);
  const node = await started(joinNode(one, { yaml, models: [model], through: wire.url, ...join }));
  await connected(other, "gpu-1");
  return { one, other, node, upstream, wire };
}

test("streams a request at one replica through a node of another, and meters it at the first", async () => {
  const { one, other, upstream } = await network();
  const answer = await ask(other, { stream: true });
  expect(answer.status).toBe(200);
  const text = await answer.text();
  expect(text).toContain(" world");
  expect(text).toEndWith("data: [DONE]\n\n");
  expect((await (await ask(other)).json()) as unknown).toMatchObject({ usage: { prompt_tokens: 7 } });
  expect(upstream.requests).toHaveLength(2);
  await usageRow(other, { upstream: "gpu-1", outcome: "completed", completion_tokens: 2 });
  const shown = await other.node("gpu-1");
  expect(shown).toMatchObject({ status: "online", replica_id: one.replicas.id, client_address: "127.0.0.1" });
  expect(one.logged("request").filter(({ route }) => route === "/internal/nodes/:id/requests")).toHaveLength(2);
  expect(one.logText() + other.logText()).not.toContain("internal_error");
});

test("stops the work of a node at another replica when the client leaves", async () => {
  const { script, left } = endless();
  const { other } = await network({ script });
  const answer = await reading(await ask(other, { stream: true }), 3);
  await answer.leave();
  await until(left, "the model server was told to stop", 2_000);
});

test("reports refusals and cut connections of another replica's node as of the own", async () => {
  const { script } = endless();
  const { one, other, upstream, wire } = await network({ script });
  const answer = await reading(await ask(other, { stream: true }), 5);
  wire.cut();
  const text = await answer.whole;
  expect(text).toContain('data: {"error":');
  expect(text).not.toContain("[DONE]");
  await usageRow(other, { outcome: "failed", upstream: "gpu-1" });
  await until(async () => (await other.node("gpu-1"))?.status === "offline", "both know that it is away", 4_000);
  const away = await ask(other);
  expect([away.status, away.headers.get("retry-after")]).toEqual([503, "2"]);
  wire.mend();
  await connected(other, "gpu-1");
  upstream.script((_request, res) => {
    res.writeHead(400, { "content-type": "application/json" });
    res.end(JSON.stringify({ error: { message: "temperature: too hot" } }));
  });
  const here = await ask(one);
  const there = await ask(other);
  expect([there.status, await there.json()]).toEqual([here.status, await here.json()]);
  expect(there.status).toBe(400);
});

test("applies an operator's approval, draining and removal of a node at the other replica", async () => {
  const { one, other, node, upstream } = await network();
  await other.admin("PATCH", `/nodes/${node.id}`, { approved_models: [] });
  await until(async () => (await ask(one)).status === 404, "it is not on offer any more", 2_500);
  await other.admin("PATCH", `/nodes/${node.id}`, { approved_models: ["*"], draining: true });
  await until(async () => (await ask(one)).status === 503, "it is drained", 2_500);
  await other.admin("PATCH", `/nodes/${node.id}`, { draining: false });
  await until(async () => (await one.node("gpu-1"))?.status === "online", "it is back", 2_500);
  upstream.script(endless().script);
  const answer = await reading(await ask(one, { stream: true }), 3);
  await other.admin("DELETE", `/nodes/${node.id}`);
  await until(() => answer.text().includes('data: {"error":'), "it is cut off at the replica that held it", 4_000);
  await until(() => node.network.uplink.view()?.status === "refused", "and knows that");
});

test("moves a node that connects to another replica, and routes requests there", async () => {
  const { one, other, node, wire } = await network();
  wire.lead(other.port);
  wire.cut();
  wire.mend();
  await until(async () => (await one.node("gpu-1"))?.replica_id === other.replicas.id, "it is at the other one");
  for (const gateway of [one, other]) {
    expect((await ask(gateway)).status).toBe(200);
  }
  expect(node.network.uplink.view()?.status).toBe("connected");
});

test("sends a stopping replica's nodes to another one after finishing its requests", async () => {
  const { script, release } = endless();
  const { one, other, wire } = await network({ script });
  const answer = await reading(await ask(other, { stream: true }), 3);
  wire.lead(other.port);
  const stopped = one.close(10_000);
  await until(async () => (await other.node("gpu-1"))?.replica_id === other.replicas.id, "the node has moved");
  expect(answer.text()).not.toContain("error");
  release();
  expect(await answer.whole).toEndWith("data: [DONE]\n\n");
  await stopped;
  expect(await (await ask(other, { stream: true })).text()).toEndWith("data: [DONE]\n\n");
});

test("reports an unreachable replica that holds a node", async () => {
  const { other } = await network({ advertises: null });
  const answer = await ask(other);
  expect(answer.status).toBe(502);
  const { error } = (await answer.json()) as { error: { message: string } };
  expect(error.message).not.toMatch(/127|replica|ADVERTISE/);
  await until(() => other.logText().includes("HEADRACE_ADVERTISE_URL"), "the operator finds out why");
});

test("advises a retry if the replica that holds a node does not respond", async () => {
  const { one, other } = await network({ advertises: `http://127.0.0.1:${await freePort()}` });
  const answer = await ask(other);
  expect([answer.status, answer.headers.get("retry-after")]).toEqual([503, "2"]);
  expect((await ask(one)).status).toBe(200);
});

// hardening: F13
test("charges bytes passed between replicas to the requesting key, so that a full key blocks no other", async () => {
  const { one, node } = await network();
  const key = deriveKey(Buffer.from(secretHex, "hex"), "replica-forward-v1");
  const path = `/internal/nodes/${node.id}/requests`;
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "x".repeat(500_000) }] });
  const open: RawConnection[] = [];
  /** Resolves with the code of a refusal, as the other replica reads it; undefined where the rest of the body is waited for. */
  const begin = async (keyId: string): Promise<string | undefined> => {
    const held = bufferedBytes.total;
    const memoryAccount = bufferedBytes.memoryAccount(new AccountMemory(), { key: keyId, account: `of ${keyId}` });
    const about = aboutText({
      ...({ requestId: "req_1", operation: "chat", model, body, stream: false, width: 1 } as const),
      memoryAccount,
    });
    const what = { method: "POST", path, replicaId: one.replicas.id, about, bodyDigest: bodyDigest(body) };
    const connection = await openRaw(one.url);
    open.push(connection);
    const lines = [
      "Host: 127.0.0.1",
      "Content-Type: application/json",
      `Content-Length: ${body.length}`,
      `${forwardHeaders.about}: ${about}`,
      `${forwardHeaders.digest}: ${what.bodyDigest}`,
      `${forwardHeaders.replica}: ${what.replicaId}`,
      `${forwardHeaders.signature}: ${signForward(what, key, systemClock)}`,
    ];
    await connection.write(head(`POST ${path} HTTP/1.1`, lines) + body.slice(0, -1));
    const answered = connection.answered(1, 10_000).then(({ answers }) => readError(answers[0]?.body ?? "")?.code);
    await until(
      async () => bufferedBytes.total > held + 400_000 || (await Promise.race([answered, Bun.sleep(5)])),
      "either",
    );
    return bufferedBytes.total > held + 400_000 ? undefined : await answered;
  };
  const { maxBytes } = bufferedBytes;
  bufferedBytes.maxBytes = 4 * 1024 * 1024;
  try {
    expect([await begin("a"), await begin("a"), await begin("a")]).toEqual([
      undefined,
      undefined,
      "rate_limit_exceeded",
    ]);
    expect(await begin("b")).toBeUndefined();
  } finally {
    bufferedBytes.maxBytes = maxBytes;
    for (const { socket } of open) socket.destroy();
  }
  await until(() => bufferedBytes.total === 0, "all is given back");
});

test("refuses forged, stale, changed and repeated requests between replicas", async () => {
  const { one, other, node, upstream } = await network();
  const key = deriveKey(Buffer.from(secretHex, "hex"), "replica-forward-v1");
  const path = `/internal/nodes/${node.id}/requests`;
  const body = JSON.stringify({ model, messages });
  const { visitors: memoryAccount } = bufferedBytes;
  const request = {
    requestId: "req_forged",
    operation: "chat",
    model,
    body,
    stream: false,
    width: 1,
    memoryAccount,
  } as const;
  const about = aboutText(request);
  const signed = (more: { at?: number; key?: Uint8Array; replicaId?: string; path?: string } = {}) => {
    const replicaId = more.replicaId ?? one.replicas.id;
    const digest = bodyDigest(body);
    const clock = { ...systemClock, nowSeconds: () => more.at ?? systemClock.nowSeconds() };
    const what = { method: "POST", path: more.path ?? path, replicaId, about, bodyDigest: digest };
    return {
      [forwardHeaders.about]: about,
      [forwardHeaders.digest]: digest,
      [forwardHeaders.replica]: replicaId,
      [forwardHeaders.signature]: signForward(what, more.key ?? key, clock),
    };
  };
  const send = async (headers: Record<string, string>, text = body) => {
    const response = await fetch(one.url + path, { method: "POST", headers, body: text });
    return response.headers.get(forwardHeaders.outcome) ?? response.status;
  };
  const good = signed();
  expect(await send(good)).toBe("answer");
  expect(await send(good), "repeated").toBe(403);
  expect(await send({ authorization: `Bearer ${one.operator}` }), "unsigned, by an operator").toBe(403);
  expect(await send(signed({ key: randomBytes(32) })), "another key").toBe(403);
  expect(await send(signed({ at: systemClock.nowSeconds() - 40 })), "stale").toBe(403);
  expect(await send(signed({ at: systemClock.nowSeconds() + 40 })), "of the future").toBe(403);
  expect(await send(signed(), body.replace("Hi", "Ho")), "another body").toBe(403);
  expect(await send(signed({ path: path.replace(node.id, "node_other") })), "another node").toBe(403);
  expect(await send({ ...signed(), [forwardHeaders.about]: aboutText({ ...request, model: "x" }) })).toBe(403);
  expect(await send(signed({ replicaId: other.replicas.id })), "meant for another replica").toBe("not_there");
  expect(upstream.requests).toHaveLength(1);
  expect(one.logText()).not.toContain(key.toString());
});

test("serves an MCP server of a node connected to another replica, with requests and notifications", async () => {
  const yaml = toolsYaml([{ name: "own", share: true, command: stdioServer }]);
  const { one, other, wire } = await network({ demo: true, models: ["*"], yaml });
  const place = { node: "gpu-1", server: "own" };
  const tested = await one.admin("POST", "/tool-server-tests", { node: place });
  expect(tested.body).toMatchObject({ ok: true, error: null });
  const added = await one.admin("POST", "/tool-servers", { name: "files", node: place, approval: "all" });
  expect([added.status, added.body.node]).toEqual([200, { node: (await one.node("gpu-1"))?.id, server: "own" }]);
  const made = await other.request("/v1/keys", { body: { name: "tools", scopes: ["tools:use"] } });
  const { key } = (await made.json()) as { key: string };
  const at = new URL(`${other.url}/mcp/files`);
  const headers = { authorization: `Bearer ${key}` };
  await until(async () => (await fetch(at, { headers })).status !== 404, "the other replica has it as well");
  const client = new Client(
    { name: "test", version: "1" },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: "legacy" } },
  );
  client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: { response: "Ulm" } }));
  await client.connect(new StreamableHTTPClientTransport(at, { requestInit: { headers } }));
  const asked = await client.callTool({ name: "test_elicitation", arguments: { message: "Where?" } });
  expect(JSON.stringify(asked.content)).toContain("Ulm");
  const call = client.callTool({ name: "silence" }).catch((error: Error) => error.message);
  await Bun.sleep(200);
  wire.cut();
  // The call may not have reached the node yet.
  expect(await call).toMatch(/was lost|The connection to the node broke/);
  wire.mend();
  await until(
    async () => (await client.callTool({ name: "test_simple_text" }).catch(() => undefined)) !== undefined,
    "it is there again",
    20_000,
  );
  await client.close();
}, 60_000);
