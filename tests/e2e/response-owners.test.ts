// Whose responses are found: those of the same account and environment, and of the same app or maker where those differ.
import { afterAll, beforeAll, expect, test } from "bun:test";
import OpenAI from "openai";
import { setUp } from "../support/browser.ts";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer } from "../support/headrace.ts";
import { mintKey, mintKeyRecord } from "../support/mint-key.ts";
import { registerApp, signInTo } from "../support/oauth-apps.ts";
import { raised } from "../support/openai-errors.ts";
import { operated } from "../support/operated.ts";
import { startReplicas } from "../support/replicas.ts";
import { saidIn } from "../support/response-script.ts";
import { type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

const model = "upstream-model";
const scopes = ["chat:read", "chat:write"] as const;

let upstream: ScriptedUpstream;
let server: TestServer;
/** Each may see its own alone. */
let owners: readonly { name: string; client: OpenAI }[];

beforeAll(async () => {
  upstream = await startUpstream();
  const deployments = `[{ upstream: up, model: ${model} }]`;
  const models = `models: [{ id: ${model}, environments: [dev, test, live], deployments: ${deployments} }]\n`;
  server = await startHeadrace({ yaml: upstreamYaml(upstream, models) });
  const clientOf = (key: string) => openaiClient({ url: server.url, key });
  const { admin } = await operated(server);
  const account = (await admin("POST", "/accounts", { name: "Another", tier: "enterprise" })).body;
  const other = await admin("POST", `/accounts/${account.id}/keys`, { name: "Key", environment: "dev" });
  const makers = await Promise.all([0, 1].map(() => mintKeyRecord(server.dataDir, { scopes })));
  const made = await Promise.all(
    makers.map(({ record }) => mintKey(server.dataDir, { scopes, parentId: record.id, createdBy: record.id })),
  );
  const browser = await setUp(server);
  const apps = await Promise.all(
    ["One", "Two"].map((name) => registerApp(server, { name, scopes: ["chat:read", "chat:write", "models:read"] })),
  );
  const tokens: string[] = [];
  for (const app of apps) tokens.push((await signInTo(app, server, browser)).access_token);
  owners = [
    { name: "another account", client: clientOf(other.body.key) },
    { name: "another environment", client: clientOf(await mintKey(server.dataDir, { scopes, environment: "test" })) },
    { name: "a key that one key made", client: clientOf(made[0] ?? "") },
    { name: "a key that another key made", client: clientOf(made[1] ?? "") },
    { name: "an app", client: clientOf(tokens[0] ?? "") },
    { name: "another app", client: clientOf(tokens[1] ?? "") },
  ];
}, 60_000);
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

/** What is not there in the words that say so, without the id that was asked for. */
async function refusalsOf(client: OpenAI, id: string, itemId: string): Promise<string[]> {
  const asked = { model, input: "Two" };
  const refused = [
    await raised(() => client.responses.retrieve(id), OpenAI.NotFoundError),
    await raised(() => client.responses.inputItems.list(id), OpenAI.NotFoundError),
    await raised(() => client.responses.retrieve(id, { stream: true }), OpenAI.NotFoundError),
    await raised(() => client.responses.cancel(id), OpenAI.NotFoundError),
    await raised(() => client.responses.delete(id), OpenAI.NotFoundError),
    await raised(() => client.responses.create({ ...asked, previous_response_id: id }), OpenAI.BadRequestError),
    await raised(() => client.responses.inputTokens.count({ ...asked, previous_response_id: id }), OpenAI.APIError),
    await raised(
      () => client.responses.create({ model, input: [{ type: "item_reference", id: itemId }] }),
      OpenAI.NotFoundError,
    ),
  ];
  return refused.map(({ status, code, message }) =>
    `${status} ${code} ${message}`.replaceAll(id, "ID").replaceAll(itemId, "ITEM"),
  );
}

// hardening: K13
test("answers requests for another owner's stored response like requests for an unknown id", async () => {
  const kept = await Promise.all(
    owners.map(async ({ name, client }) => {
      const { id, output } = await client.responses.create({ model, input: `CANARY of ${name}` });
      // One that is in the background can be followed and stopped by whose it is alone.
      const stopped = await client.responses.create({ model, input: `CANARY of ${name}`, background: true });
      return [
        { id, itemId: output[0]?.id ?? "" },
        { id: stopped.id, itemId: output[0]?.id ?? "" },
      ];
    }),
  );
  const [never, neverItem] = [
    "resp_00000000-0000-7000-8000-000000000000",
    "msg_00000000-0000-7000-8000-000000000000_0",
  ];
  for (const [index, { client }] of owners.entries()) {
    const unknown = await refusalsOf(client, never, neverItem);
    for (const [other, made] of kept.entries()) {
      for (const { id, itemId } of other === index ? [] : made) {
        expect(await refusalsOf(client, id, itemId)).toEqual(unknown);
      }
    }
    for (const { id } of kept[index] ?? []) expect((await client.responses.retrieve(id)).id).toBe(id);
  }
}, 60_000);

// hardening: K13
test("returns only an owner's own responses under concurrent load with other owners' ids", async () => {
  const chains = await Promise.all(
    owners.map(async ({ name, client }) => {
      const { id } = await client.responses.create({ model, input: `CANARY of ${name}` });
      return id;
    }),
  );
  upstream.requests.length = 0;
  const asked = Array.from({ length: 240 }, (_, n) => n);
  const outcomes = await Promise.all(
    asked.map(async (n) => {
      const owner = owners[n % owners.length];
      // Every second one asks for what is its own.
      const other = n % 2 === 0 ? n % owners.length : (n * 7 + 1) % owners.length;
      const isOwn = other === n % owners.length;
      const params = {
        model,
        input: `Load of ${owner?.name}`,
        previous_response_id: chains[other] ?? "",
        stream: n % 3 === 0,
      };
      const answer = await owner?.client.responses
        .create(params as { model: string; input: string })
        .catch((error: unknown) => error);
      if (answer && Symbol.asyncIterator in (answer as object)) await Array.fromAsync(answer as AsyncIterable<unknown>);
      if (isOwn) return answer instanceof Error ? `refused: ${answer.message}` : "answered";
      return answer instanceof OpenAI.BadRequestError && answer.code === "previous_response_not_found"
        ? "refused"
        : "found";
    }),
  );
  const count = (what: string) => outcomes.filter((outcome) => outcome === what).length;
  expect(outcomes.filter((outcome) => outcome !== "answered" && outcome !== "refused")).toEqual([]);
  expect(count("answered")).toBe(upstream.requests.length);
  expect(count("refused")).toBeGreaterThan(80);
  for (const request of upstream.requests) {
    const names = owners.map(({ name }) => name).filter((name) => saidIn(request)[0] === `user: CANARY of ${name}`);
    expect(saidIn(request).at(-1)).toBe(`user: Load of ${names[0]}`);
  }
}, 60_000);

// hardening: K13
test("hides other owners' responses over two replicas, whichever stored them", async () => {
  await using replicas = await startReplicas({ yaml: upstreamYaml(upstream) });
  const [first, second] = replicas.servers;
  if (!first || !second) throw new Error("There are no two replicas.");
  const make = async (by: string, keyScopes: readonly string[]) => {
    const headers = { authorization: `Bearer ${by}` };
    const made = await first.request("/v1/keys", { headers, body: { name: "Made", scopes: keyScopes } });
    return ((await made.json()) as { key: string }).key;
  };
  const makers = await Promise.all([0, 1].map(() => make(replicas.key, [...scopes, "keys:manage"])));
  const keys = await Promise.all(makers.map((maker) => make(maker, scopes)));
  // Two of each maker, one at each replica: those see each other's.
  const clients = keys.flatMap((key) => [first, second].map(({ url }) => openaiClient({ url, key })));
  const ids = await Promise.all(
    clients.map(async (client) => (await client.responses.create({ model, input: "One" })).id),
  );
  const outcomes = await Promise.all(
    Array.from({ length: 96 }, async (_, n) => {
      const [asking, asked] = [n % 4, (n >> 2) % 4];
      const isOwn = asking >> 1 === asked >> 1;
      const params = { model, input: "Two", previous_response_id: ids[asked] ?? "" };
      const answer = await clients[asking]?.responses.create(params).catch((error: unknown) => error);
      if (answer instanceof OpenAI.BadRequestError && answer.code === "previous_response_not_found") return !isOwn;
      return answer instanceof Error ? String(answer) : isOwn;
    }),
  );
  expect(outcomes).toEqual(outcomes.map(() => true));
}, 60_000);
