// How machines get in: tokens that let one in, in time, under a name that nobody has.
import { afterEach, expect, test } from "bun:test";
import type { JoinTokenWire } from "../../src/wire/nodes.ts";
import { startGateway } from "../support/nodes.ts";
import { startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const part of stack.splice(0).reverse()) await part[Symbol.asyncDispose]();
});

async function started<Part extends AsyncDisposable>(part: Promise<Part>): Promise<Part> {
  const ready = await part;
  stack.push(ready);
  return ready;
}

test("accepts a join token once, before it expires or is deleted, and does not reveal the reason", async () => {
  const gateway = await started(startGateway());
  const key = () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("base64url");
  const enrol = async (token: string, name: string) => {
    const answer = await fetch(`${gateway.url}/v1/nodes`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token, name, public_key: key() }),
    });
    return { status: answer.status, text: await answer.text() };
  };
  const used = await gateway.token();
  const outcomes = await Promise.all(Array.from({ length: 12 }, (_, index) => enrol(used.token, `gpu-${index}`)));
  expect(outcomes.filter(({ status }) => status === 200)).toHaveLength(1);
  const deleted = await gateway.token();
  expect((await gateway.admin("DELETE", `/node-tokens/${deleted.id}`)).status).toBe(200);
  const texts = [...outcomes.filter(({ status }) => status !== 200)];
  texts.push(await enrol(deleted.token, "gpu-x"), await enrol("hrn_nonsense", "gpu-x"));
  texts.push(await enrol(`hrn_${"0".repeat(32)}`, "gpu-x"), await enrol(gateway.key, "gpu-x"));
  expect(new Set(texts.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
  expect(texts[0]?.status).toBe(403);

  const taken = await enrol((await gateway.token()).token, "built-in");
  expect([taken.status, taken.text]).toEqual([400, expect.stringContaining("name")]);
  const list = (await gateway.admin("GET", "/node-tokens")).body.data as JoinTokenWire[];
  expect(list.map(({ status }) => status).sort()).toEqual(["active", "used"]);
  expect(JSON.stringify(list)).not.toContain(used.token);
  const audit = JSON.stringify((await gateway.admin("GET", "/audit?limit=50")).body);
  for (const action of ["node.joined", "node_token.created", "node_token.deleted"]) expect(audit).toContain(action);
  expect(audit + gateway.logText()).not.toContain(used.token);
});

test("refuses a node named like an upstream, and an upstream named like a node", async () => {
  const upstream = await started(startUpstream());
  const gateway = await started(startGateway({ yaml: upstreamYaml(upstream) }));
  const { token } = await gateway.token();
  const body = JSON.stringify({ token, name: "up", public_key: Buffer.alloc(32, 7).toString("base64url") });
  const join = (text: string) =>
    fetch(`${gateway.url}/v1/nodes`, { method: "POST", headers: { "content-type": "application/json" }, body: text });
  expect((await join(body)).status).toBe(400);
  expect((await join(body.replace('"up"', '"gpu-1"'))).status).toBe(200);
  const added = await gateway.admin("POST", "/upstreams", { name: "gpu-1", url: upstream.url });
  expect([added.status, added.body.error.message]).toEqual([400, expect.stringContaining("gpu-1")]);
});

test("limits attempts to join from one address", async () => {
  const gateway = await started(startGateway());
  const body = JSON.stringify({ token: "hrn_no", name: "gpu-1", public_key: Buffer.alloc(32).toString("base64url") });
  const headers = { "content-type": "application/json" };
  const statuses = await Promise.all(
    Array.from(
      { length: 70 },
      async () => (await fetch(`${gateway.url}/v1/nodes`, { method: "POST", headers, body })).status,
    ),
  );
  expect(statuses.filter((status) => status === 403)).toHaveLength(60);
  expect(statuses.filter((status) => status === 429)).toHaveLength(10);
});
