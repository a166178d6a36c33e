// A machine that joined in order and means harm: what it can do to its gateway is bounded, and ends with its removal.
import { afterEach, expect, test } from "bun:test";
import { tunnelCloseCodes } from "../../src/nodes/tunnel/contract.ts";
import { messageTypes } from "../../src/nodes/tunnel/messages.ts";
import { until } from "../support/headrace.ts";
import { hostileNode } from "../support/hostile-node.ts";
import { ask } from "../support/node-requests.ts";
import { startGateway } from "../support/nodes.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { json, type RawEnd } from "../support/tunnel/raw-ends.ts";
import { expectOwnStreamsAlone, joinTalkativeNode } from "../support/unread-streams.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

async function started<Part extends AsyncDisposable>(part: Promise<Part>): Promise<Part> {
  const ready = await part;
  stack.push(ready);
  return ready;
}

test("keeps one connection of a node that announces leaving and reconnects, and none after its removal", async () => {
  const gateway = await started(startGateway());
  const node = await hostileNode(gateway, "mallory", ["m"]);
  const ends: RawEnd[] = [];
  for (let count = 0; count < 5; count++) {
    const end = await node.connect();
    ends.push(end);
    end.send(messageTypes.drain, 0);
    await end.received(messageTypes.drain);
  }
  const open = () => ends.filter(({ listener }) => listener.end === undefined);
  await until(() => open().length === 1, "what was replaced is closed", 2_000);
  await gateway.admin("DELETE", `/nodes/${node.identity.node_id}`);
  await until(() => open().length === 0, "a removed node is cut off", 2_000);
});

test("ends the requests of a removed node on a connection that it announced to leave", async () => {
  const gateway = await started(startGateway());
  const node = await hostileNode(gateway, "mallory", ["upstream-model"]);
  const old = await node.connect((end, stream) => {
    end.send(messageTypes.head, stream, '{"status":200,"headers":{"content-type":"text/event-stream"}}');
    end.send(messageTypes.data, stream, 'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n');
  });
  await until(async () => (await gateway.node("mallory"))?.status === "online", "it serves");
  const answer = await ask(gateway, { stream: true });
  old.send(messageTypes.drain, 0);
  await until(async () => (await gateway.node("mallory"))?.status === "draining", "its gateway knows");
  // What it has is to be ended first: so long it gets no word that nothing more comes.
  expect(old.of(messageTypes.drain)).toEqual([]);
  await node.connect();
  expect(old.listener.end).toBeUndefined();
  await gateway.admin("DELETE", `/nodes/${node.identity.node_id}`);
  expect((await old.end()).code).toBe(tunnelCloseCodes.revoked);
  expect(await answer.text()).toContain('data: {"error":');
});

test("ignores a node's denial of capabilities for an upstream's model", async () => {
  const upstream = await started(startUpstream());
  const yaml = upstreamYaml(upstream, "models: [{ id: upstream-model, context: 100, capabilities: { chat: true } }]\n");
  const gateway = await started(startGateway({ yaml }));
  const node = await hostileNode(gateway, "mallory", []);
  const end = await node.connect();
  const models = [{ id: "upstream-model", context: 1, capabilities: { chat: false } }];
  end.send(messageTypes.announce, 0, json({ version: "9.9.9", models }));
  const left = () => gateway.logged("node_model_left_out");
  await until(() => left().length > 0, "the node is left out");
  expect(left()).toEqual([expect.objectContaining({ node: "mallory", model: "upstream-model" })]);
  expect((await ask(gateway, { model: "upstream-model", max_tokens: 50 })).status).toBe(200);
});

test("makes a node that reconnects repeatedly wait, and keeps its connection", async () => {
  const gateway = await started(startGateway());
  const node = await hostileNode(gateway, "mallory", ["m"]);
  const ends: RawEnd[] = [];
  for (let count = 0; count < 40; count++) ends.push(await node.connect());
  await until(() => ends.filter(({ listener }) => listener.end === undefined).length === 1, "all but one are closed");
  const busy = ends.filter(({ listener }) => listener.end?.code === tunnelCloseCodes.busy);
  expect(busy.length).toBeGreaterThan(10);
  // The last ones were sent away, so that it is an earlier one that stays.
  expect(ends.at(-1)?.listener.end?.code).toBe(tunnelCloseCodes.busy);
  expect((await gateway.node("mallory"))?.status).toBe("online");
  expect(gateway.logged("node_connected").length).toBe(ends.length - busy.length);
});

// hardening: F13
test("ends only streams of the key that leaves a node's streams unread", async () => {
  const gateway = await started(startGateway());
  await started(joinTalkativeNode(gateway));
  await until(async () => (await gateway.node("talkative"))?.status === "online", "it serves");
  await expectOwnStreamsAlone(gateway);
}, 60_000);
