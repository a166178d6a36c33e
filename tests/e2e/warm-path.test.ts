// A warm request reads no database: every statement is counted while requests run.
import { expect, test } from "bun:test";
import { startHeadrace, until } from "../support/headrace.ts";
import { chatScript, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";

test("uses the database no more during 200 warm chats than when idle, apart from the ledger", async () => {
  await using upstream = await startUpstream(chatScript());
  let uses = 0;
  await using server = await startHeadrace({
    // Live keys, so that limits and quotas are in force.
    flags: { mode: "production", publicUrl: "http://127.0.0.1:7545" },
    yaml: upstreamYaml(
      upstream,
      "tiers: [{ name: enterprise, requests_per_minute: 100000, tokens_per_minute: 10000000, monthly_tokens: 10000000 }]\n",
    ),
    onDatabaseUse: () => {
      uses++;
    },
  });
  const answer = await server.request("/v1/auth/token", { body: { api_key: server.key } });
  const { access_token: token } = (await answer.json()) as { access_token: string };
  const chat = async (credential: string, stream: boolean) => {
    const response = await server.request("/v1/chat/completions", {
      body: { model: "upstream-model", messages: [{ role: "user", content: "x" }], max_tokens: 9, stream },
      headers: { authorization: `Bearer ${credential}`, "x-headrace-tags": stream ? "team-a,x" : "" },
    });
    expect(response.status).toBe(200);
    await response.text();
  };
  const cold = uses;
  await chat(server.key, false);
  await chat(token, false);
  expect(uses).toBeGreaterThan(cold);

  // What runs by the clock (the ledger's drain, the watch over revisions, last use) goes on, at its own pace.
  const perBatch: number[] = [];
  for (let batch = 0; batch < 20; batch++) {
    const before = uses;
    for (let i = 0; i < 5; i++) await Promise.all([chat(server.key, i % 2 === 0), chat(token, i % 2 === 1)]);
    perBatch.push(uses - before);
  }
  const startedAt = performance.now();
  const before = uses;
  await until(() => performance.now() - startedAt > 1_000, "a second without requests");
  const idlePerSecond = uses - before;
  // A read for every request would be 10 a batch, and 200 in all.
  expect(perBatch.filter((count) => count === 0).length).toBeGreaterThanOrEqual(1);
  expect(perBatch.reduce((sum, count) => sum + count, 0)).toBeLessThan(60 + idlePerSecond * 2);
  expect(Math.max(...perBatch)).toBeLessThan(10);
});
