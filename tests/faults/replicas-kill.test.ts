// Replicas that are killed again and again under mixed load: each request that a model server saw has one row, and its quota counts it once.
import { afterAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SQL } from "bun";
import { runCommand } from "../fixtures/command-line.ts";
import { until } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { freshDatabase } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import { chunk, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

const cycles = long ? 40 : 3;
/** Tokens that two replicas settle in the time in which one writes. */
const maxAmiss = 2_500;
const directory = mkdtempSync(join(tmpdir(), "headrace-replicas-kill-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

// hardening: F1
test(`loses and doubles nothing over ${cycles} kills of one of three replicas under load`, async () => {
  await using redis = await startRedis();
  /** Tokens that it has generated, by request. */
  const generated = new Map<string, number>();
  await using upstream = await startUpstream(async ({ body, headers }, res) => {
    const id = String(headers["x-request-id"]);
    if (generated.has(id)) throw new Error(`${id} was asked twice`);
    const tokens = Number(body["max_tokens"]);
    const usage = { prompt_tokens: 1, completion_tokens: tokens, total_tokens: tokens + 1 };
    const names = { id: "c", object: "chat.completion", created: 1, model: "m" };
    if (!body["stream"]) {
      await Bun.sleep(Math.random() * 10);
      generated.set(id, tokens);
      res.setHeader("content-type", "application/json");
      const choices = [
        { index: 0, message: { role: "assistant", content: "a ".repeat(tokens) }, finish_reason: "stop" },
      ];
      res.end(JSON.stringify({ ...names, choices, usage }));
      return;
    }
    res.setHeader("content-type", "text/event-stream");
    for (let i = 1; i <= tokens && !res.destroyed; i++) {
      generated.set(id, i);
      res.write(chunk({ content: "a " }));
      await Bun.sleep(5);
    }
    res.write(chunk({}, "stop"));
    res.write(chunk({}, null, { choices: [], usage }));
    res.end("data: [DONE]\n\n");
  });
  const databaseUrl = await freshDatabase();
  const env = {
    HEADRACE_DATABASE_URL: databaseUrl,
    HEADRACE_REDIS_URL: redis.url,
    HEADRACE_SECRET: randomBytes(32).toString("hex"),
  };
  const config = join(directory, "headrace.yaml");
  writeFileSync(
    config,
    upstreamYaml(upstream, "tiers: [{ name: enterprise, requests_per_minute: null, tokens_per_minute: null }]\n"),
  );
  let started = 0;
  const start = (dataDir = join(directory, `data-${started++}`)) =>
    startServerProcess({
      config,
      env,
      dataDir,
      args: ["--mode", "production", "--public-url", "http://localhost:7545"],
    });
  const servers: ServerProcess[] = await Promise.all([start(), start(), start()]);
  const operator = (
    await runCommand(["operator-key", "--data-dir", join(directory, "data-0"), "--quiet"], { env })
  ).stdout.trim();
  const post = (server: ServerProcess, path: string, key: string, body: unknown) =>
    fetch(server.url + path, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const get = (server: ServerProcess, path: string, by: string) =>
    fetch(server.url + path, { headers: { authorization: `Bearer ${by}` } });
  const made = await post(servers[0] as ServerProcess, "/v1/keys", operator, {
    name: "x",
    scopes: ["chat:write", "usage:read"],
    monthly_tokens: 100_000_000,
  });
  const { key } = (await made.json()) as { key: string };

  // So that the account has a quota that is counted.
  const accounts = (await (await get(servers[0] as ServerProcess, "/v1/admin/accounts", operator)).json()) as {
    data: { id: string }[];
  };
  const accountId = accounts.data[0]?.id;
  const patched = await fetch(`${servers[0]?.url}/v1/admin/accounts/${accountId}`, {
    method: "PATCH",
    headers: { authorization: `Bearer ${operator}`, "content-type": "application/json" },
    body: JSON.stringify({ monthly_tokens: 100_000_000 }),
  });
  expect(patched.status).toBe(200);

  /** Tokens that a client had, whole answers alone. */
  const whole = new Map<string, number>();
  const refused: string[] = [];
  let running = true;
  const clients = Array.from({ length: 18 }, async (_, i) => {
    while (running) {
      try {
        const tokens = 1 + Math.floor(Math.random() * 60);
        const body = {
          model: "upstream-model",
          stream: Math.random() < 0.5,
          max_tokens: tokens,
          messages: [{ role: "user", content: "x" }],
        };
        const response = await post(servers[i % 3] as ServerProcess, "/v1/chat/completions", key, body);
        const text = await response.text();
        if (response.status !== 200) refused.push(`${response.status} ${text.slice(0, 200)}`);
        else if (!body.stream || text.endsWith("data: [DONE]\n\n"))
          whole.set(response.headers.get("x-request-id") ?? "", tokens);
      } catch {
        // Its server is gone: a client would go to another one.
        await Bun.sleep(20);
      }
    }
  });
  let drained = 0;
  for (let cycle = 0; cycle < cycles; cycle++) {
    await Bun.sleep(100 + Math.random() * 700);
    const index = cycle % 3;
    const victim = servers[index] as ServerProcess;
    victim.process.kill("SIGKILL");
    await victim.process.exited;
    if (cycle % 2 === 0) {
      servers[index] = await start(victim.dataDir);
    } else {
      servers[index] = await start();
      const { code, stderr } = await runCommand(["spool", "drain", victim.dataDir, "--json"], { env });
      expect([code, stderr]).toEqual([0, ""]);
      expect(readdirSync(join(victim.dataDir, "spool")).filter((name) => name.endsWith(".spool"))).toEqual([]);
      drained++;
    }
  }
  running = false;
  await Promise.all(clients);
  const db = new SQL(databaseUrl, { max: 1 });
  type Row = { request_id: string; outcome: string; prompt_tokens: string; completion_tokens: string };
  const rows = async () =>
    new Map((await db`SELECT * FROM usage_records`).map((row: Row) => [row.request_id, row])) as Map<string, Row>;
  await until(async () => {
    const known = await rows();
    return [...generated.keys(), ...whole.keys()].every((id) => known.has(id));
  }, "each request has its row");
  const known = await rows();
  const wrong = [...whole].filter(
    ([id, tokens]) => Number(known.get(id)?.completion_tokens) !== tokens || known.get(id)?.outcome !== "completed",
  );
  const tooMuch = [...known.values()].filter(
    ({ request_id, completion_tokens }) => Number(completion_tokens) > (generated.get(request_id) ?? 0),
  );
  const sum = [...known.values()].reduce(
    (total, row) => total + Number(row.prompt_tokens) + Number(row.completion_tokens),
    0,
  );
  const [rolled] = await db`
    SELECT sum(requests) AS n, sum(prompt_tokens + completion_tokens) AS tokens FROM usage_rollups WHERE span = 'day'`;
  const [inAll] = await db`SELECT count(*) AS n FROM usage_records`;
  await db.close();
  expect({ wrong, tooMuch, refused }).toEqual({ wrong: [], tooMuch: [], refused: [] });
  expect([Number(rolled.n), Number(rolled.tokens), Number(inAll.n)]).toEqual([known.size, sum, known.size]);
  // Each death has the counters read again: what the others used in the half second before may count twice, or, where one
  // takes longer to write it, be missing.
  for (const server of servers) {
    const { quota } = (await (await get(server, "/v1/account", key)).json()) as { quota: { tokens: { used: number } } };
    expect(quota.tokens.used).toBeWithin(sum - cycles * maxAmiss, sum + cycles * maxAmiss + 1);
    console.log(`the counter of the quota has ${quota.tokens.used} tokens for ${sum}`);
  }
  console.log(
    `${cycles} kills, ${drained} spools drained: ${generated.size} requests at the model server, ${known.size} rows, ${whole.size} delivered whole`,
  );
  await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
}, 600_000);
