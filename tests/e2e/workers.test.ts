// Several workers are one server: limits, keys, ledger, log and metrics over all of them, and nothing is lost with one that dies.
import { Database } from "bun:sqlite";
import { afterEach, expect, spyOn, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { SQL } from "bun";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { freshDatabase, type PostgresServer, startPostgres } from "../support/postgres.ts";
import { chatScript, chunk, type Script, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { startServerProcess } from "../support/server-process.ts";

const production = { mode: "production", publicUrl: "https://ai.example.test", logFormat: "json" };
const metricsToken = "metrics-token-0123456789";
const stack: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of stack.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

async function start(yaml = "", flags: Record<string, unknown> = {}, env: Record<string, string> = {}, key?: string) {
  const upstream = await startUpstream();
  stack.push(upstream);
  const server = await startHeadrace({
    yaml: upstreamYaml(upstream, yaml),
    env: { HEADRACE_METRICS_TOKEN: metricsToken, ...env },
    flags: { ...production, workers: "3", ...flags },
  });
  stack.push(server);
  await served(server, key);
  return { upstream, server };
}

/** Until each worker serves by itself: before, requests are handed over. */
async function served(server: TestServer, key?: string): Promise<void> {
  await until(async () => {
    const texts = (await server.workers?.metrics()) ?? [];
    if (texts.length < 3) return false;
    // All of them may be gone at this moment, in tests that kill them.
    await chat(server, {}, key).catch(() => {});
    return texts.every((text) => /headrace_inference_requests_total\{.*\} \d/.test(text));
  }, "each worker has served a request");
}

/** A connection of its own each time, so that the requests are spread over the workers. */
async function chat(server: TestServer, body: Record<string, unknown> = {}, key = server.key): Promise<number> {
  const response = await fetch(`${server.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json", connection: "close" },
    body: JSON.stringify({ model: "upstream-model", messages: [{ role: "user", content: "x" }], ...body }),
  });
  await response.text();
  return response.status;
}

async function makeKey(server: TestServer, body: Record<string, unknown>): Promise<{ id: string; key: string }> {
  const response = await server.request("/v1/keys", { body: { name: "One", scopes: ["chat:write"], ...body } });
  expect(response.status).toBe(200);
  return (await response.json()) as { id: string; key: string };
}

function counts(statuses: readonly number[]): Record<number, number> {
  const sums: Record<number, number> = {};
  for (const status of statuses) sums[status] = (sums[status] ?? 0) + 1;
  return sums;
}

async function metric(server: TestServer, sample: RegExp): Promise<number> {
  const text = await (
    await server.request("/metrics", { headers: { authorization: `Bearer ${metricsToken}` } })
  ).text();
  return text
    .split("\n")
    .filter((line) => sample.test(line))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
}

async function flushed(server: TestServer): Promise<void> {
  await server.workers?.flush();
  await server.governance.ledger.flush();
}

function usage(server: TestServer): { requests: number; tokens: number } {
  const db = new Database(join(server.dataDir, "headrace.db"), { readonly: true });
  const row = db
    .query("SELECT count(*) AS requests, sum(prompt_tokens + completion_tokens) AS tokens FROM usage_records")
    .get();
  db.close();
  return row as { requests: number; tokens: number };
}

test("applies a limit and a quota read at runtime exactly over all workers", async () => {
  const { server } = await start();
  const limited = await makeKey(server, { rate_limit: 50, rate_limit_window: 3_600 });
  const statuses = await Promise.all(Array.from({ length: 120 }, () => chat(server, {}, limited.key)));
  expect(counts(statuses)).toEqual({ 200: 50, 429: 70 });
  // What the workers have settled of it by then is in no database yet.
  const later = await makeKey(server, {});
  const before = await Promise.all(Array.from({ length: 30 }, () => chat(server, {}, later.key)));
  expect(counts(before)).toEqual({ 200: 30 });
  const quotas = [{ unit: "requests", amount: 40, per: "day" }];
  const changed = await server.request(`/v1/keys/${later.id}`, { method: "PATCH", body: { quotas } });
  expect(changed.status).toBe(200);
  const after = await Promise.all(Array.from({ length: 40 }, () => chat(server, {}, later.key)));
  expect(counts(after)).toEqual({ 200: 10, 403: 30 });
});

test("serves compressed bodies on every path, whichever process has the model", async () => {
  const place = "deployments: [{ upstream: up, model: upstream-model }]";
  const { server } = await start(`models:\n  - { id: governed, ${place}, policies: { continuation: true } }\n`);
  const codings: Record<string, (text: string) => Uint8Array> = {
    gzip: gzipSync,
    deflate: deflateSync,
    br: brotliCompressSync,
    zstd: zstdCompressSync,
    identity: Buffer.from,
  };
  const messages = [{ role: "user", content: "x" }];
  const bodies = {
    "/v1/chat/completions": { messages },
    "/v1/responses": { input: "x" },
    "/v1/messages": { max_tokens: 5, messages },
    "/v1/messages/count_tokens": { messages },
  };
  for (const [path, body] of Object.entries(bodies)) {
    for (const [coding, packed] of Object.entries(codings)) {
      for (const [model, more] of [
        ["upstream-model", {}],
        ["governed", {}],
        ["upstream-model", { store: true }],
      ]) {
        // One connection each: some are answered by a worker, some handed over once a worker has read them.
        const asked = Array.from({ length: 3 }, async () => {
          const response = await fetch(server.url + path, {
            method: "POST",
            headers: {
              authorization: `Bearer ${server.key}`,
              ...{ "content-type": "application/json", "content-encoding": coding, connection: "close" },
            },
            body: new Uint8Array(packed(JSON.stringify({ model, ...body, ...(more as object) }))),
          });
          return [path, coding, response.status, response.ok ? "" : await response.text()];
        });
        expect(await Promise.all(asked)).toEqual(Array.from({ length: 3 }, () => [path, coding, 200, ""]));
      }
    }
  }
});

test("limits a key's open requests over all workers exactly", async () => {
  const { upstream, server } = await start("limits: { open_requests_per_key: 7 }\n");
  const { key } = await makeKey(server, {});
  const going = Promise.withResolvers<void>();
  upstream.script(async (request, res) => {
    await going.promise;
    await chatScript()(request, res);
  });
  const statuses = Promise.all(Array.from({ length: 40 }, () => chat(server, {}, key)));
  await until(
    () => server.logged("request").filter(({ status }) => status === 429).length === 33,
    "the others are refused",
  );
  going.resolve();
  expect(counts(await statuses)).toEqual({ 200: 7, 429: 33 });
  expect(counts(await Promise.all(Array.from({ length: 7 }, () => chat(server, {}, key))))).toEqual({ 200: 7 });
});

test("refuses a revoked key at all workers from the answer on", async () => {
  const { server } = await start();
  for (let round = 0; round < 10; round++) {
    const { id, key } = await makeKey(server, {});
    expect(counts(await Promise.all(Array.from({ length: 12 }, () => chat(server, {}, key))))).toEqual({ 200: 12 });
    expect((await server.request(`/v1/keys/${id}`, { method: "DELETE" })).status).toBe(200);
    expect(counts(await Promise.all(Array.from({ length: 12 }, () => chat(server, {}, key))))).toEqual({ 401: 12 });
  }
});

test("replaces a killed worker, records its requests once, refunds its limits, and serves others", async () => {
  const { upstream, server } = await start();
  await flushed(server);
  const before = usage(server);
  const { key } = await makeKey(server, { quotas: [{ unit: "tokens", amount: 1_000_000, per: "day" }] });
  upstream.script(slowStream);
  const streams = Array.from({ length: 24 }, async () => {
    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json", connection: "close" },
      body: JSON.stringify({
        ...{ model: "upstream-model", stream: true, max_tokens: 400 },
        messages: [{ role: "user", content: "x" }],
      }),
    });
    return await response.text().then(
      (text) => text.includes("[DONE]"),
      () => false,
    );
  });
  await until(() => upstream.requests.filter(({ body }) => body["stream"]).length === 24, "all of them stream");
  await Bun.sleep(1_200);
  const [victim = 0] = server.workers?.pids ?? [];
  process.kill(victim, "SIGKILL");
  const whole = await Promise.all(streams);
  expect(whole.filter(Boolean).length).toBeGreaterThan(8);
  expect(whole.filter((isWhole) => !isWhole).length).toBeGreaterThan(0);
  await until(() => server.workers?.pids.length === 3 && !server.workers.pids.includes(victim), "it is replaced");
  expect(server.logged("worker_died")).toHaveLength(1);
  await until(() => usage(server).requests - before.requests === 24, "all of them are on the ledger");
  expect(await held(server, key)).toBe(usage(server).tokens - before.tokens);
  upstream.script(chatScript());
  expect(counts(await Promise.all(Array.from({ length: 12 }, () => chat(server))))).toEqual({ 200: 12 });
}, 60_000);

test("refuses a revoked key at a busy worker once it resumes, without killing it for slowness", async () => {
  const { upstream, server } = await start();
  const { id, key } = await makeKey(server, {});
  // Each worker knows the key, and has a stream of another one.
  expect(counts(await Promise.all(Array.from({ length: 24 }, () => chat(server, {}, key))))).toEqual({ 200: 24 });
  upstream.script(slowStream);
  const streams = Promise.all(Array.from({ length: 12 }, () => chat(server, { stream: true })));
  await until(() => upstream.requests.filter(({ body }) => body["stream"]).length === 12, "all of them stream");
  const [victim = 0] = server.workers?.pids ?? [];
  process.kill(victim, "SIGSTOP");
  try {
    // Some come to the one that is stopped, which counts as hanging after five seconds: one after the other would take too long.
    const revoke = async () => {
      const { ok } = await fetch(`${server.url}/v1/keys/${id}`, {
        ...{ method: "DELETE", signal: AbortSignal.timeout(1_000) },
        headers: { authorization: `Bearer ${server.key}`, connection: "close" },
      });
      return ok || Promise.reject(new Error("not revoked by this one"));
    };
    const revoked = () => Promise.any(Array.from({ length: 8 }, revoke)).catch(() => false);
    await until(revoked, "it is revoked");
  } finally {
    upstream.script(chatScript());
  }
  const refused = Promise.all(Array.from({ length: 24 }, () => chat(server, {}, key)));
  // Longer than the second for which an answer once waited for all workers.
  await Bun.sleep(1_500);
  process.kill(victim, "SIGCONT");
  expect(counts(await refused)).toEqual({ 401: 24 });
  expect(counts(await streams)).toEqual({ 200: 12 });
  expect(server.logged("worker_killed")).toEqual([]);
  expect(server.workers?.pids).toContain(victim);
});

test("replaces a hanging idle worker", async () => {
  const { server } = await start();
  const [victim = 0] = server.workers?.pids ?? [];
  process.kill(victim, "SIGSTOP");
  await until(() => server.logged("worker_killed").length === 1, "it is killed");
  await until(() => server.workers?.pids.length === 3 && !server.workers.pids.includes(victim), "it is replaced");
  await served(server);
  expect(counts(await Promise.all(Array.from({ length: 12 }, () => chat(server))))).toEqual({ 200: 12 });
});

test("starts a dead worker later if the system cannot create a process now", async () => {
  const { server } = await start();
  const [victim = 0] = server.workers?.pids ?? [];
  const spawning = spyOn(Bun, "spawn").mockImplementationOnce(() => {
    throw new Error("ENOMEM: not enough memory, posix_spawn");
  });
  process.kill(victim, "SIGKILL");
  await until(() => server.logged("worker_not_started").length === 1, "it cannot be started");
  spawning.mockRestore();
  await until(() => server.workers?.pids.length === 3, "it is replaced");
  await served(server);
  expect(counts(await Promise.all(Array.from({ length: 12 }, () => chat(server))))).toEqual({ 200: 12 });
});

const slowStream: Script = async (_request, res) => {
  res.writeHead(200, { "content-type": "text/event-stream" });
  for (let i = 0; i < 100 && !res.destroyed; i++) {
    res.write(chunk({ content: "word " }));
    await Bun.sleep(30);
  }
  const usage = { prompt_tokens: 7, completion_tokens: 100, total_tokens: 107 };
  res.write(chunk({}, "stop", { usage }));
  res.end("data: [DONE]\n\n");
};

/** The tokens of the key's quota that count as used, those that are set aside included. */
async function held(server: TestServer, key: string): Promise<number> {
  const response = await fetch(`${server.url}/v1/limits`, { headers: { authorization: `Bearer ${key}` } });
  const { quotas } = (await response.json()) as { quotas: { used: number }[] };
  return quotas.at(-1)?.used ?? -1;
}

// long-lived: worker.server
test("ends all workers, stopped ones too, if the primary process is killed, and restarts on the same port without old sockets", async () => {
  const directory = mkdtempSync(join(tmpdir(), "headrace-test-"));
  const config = join(directory, "headrace.yaml");
  writeFileSync(config, "{}");
  const options = { config, dataDir: join(directory, "data"), args: ["--workers", "2"] };
  const server = await startServerProcess(options);
  stack.push(server);
  const { pid } = server.process;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").map(Number);
  const workers = children.filter((child) =>
    readFileSync(`/proc/${child}/cmdline`, "utf8").includes("@serve-requests"),
  );
  expect(workers).toHaveLength(2);
  const sockets = readFileSync(join(options.dataDir, "worker-sockets"), "utf8");
  for (const worker of workers) process.kill(worker, "SIGSTOP");
  process.kill(pid, "SIGKILL");
  await until(() => !workers.some(isAlive), "they have ended");
  const next = await startServerProcess({ ...options, args: [...options.args, "--port", new URL(server.url).port] });
  stack.push(next);
  expect((await fetch(`${next.url}/healthz`)).status).toBe(200);
  expect(existsSync(sockets)).toBe(false);
  const others = readFileSync(join(options.dataDir, "worker-sockets"), "utf8");
  next.process.kill("SIGTERM");
  await next.process.exited;
  expect([others, join(options.dataDir, "worker-sockets")].map((path) => existsSync(path))).toEqual([false, false]);
  rmSync(directory, { recursive: true, force: true });
});

function isAlive(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return false;
  }
}

test("serves all other routes by each worker, and logs and counts each request once", async () => {
  const { server } = await start();
  const before = await metric(server, /^headrace_http_requests_total\{.*chat.completions/);
  const ids = await Promise.all(
    Array.from({ length: 30 }, async (_, i) => {
      const path = i % 3 === 0 ? "/v1/models" : "/v1/chat/completions";
      const body = { model: "upstream-model", messages: [{ role: "user", content: "x" }] };
      const response = await server.request(path, i % 3 === 0 ? {} : { body, headers: { connection: "close" } });
      await response.text();
      expect(response.status).toBe(200);
      return response.headers.get("x-request-id");
    }),
  );
  for (const path of ["/healthz", "/readyz", "/dashboard", "/v1/usage", "/openapi.json"]) {
    const statuses = await Promise.all(Array.from({ length: 6 }, async () => (await server.request(path)).status));
    expect([path, new Set(statuses).size, statuses[0]]).toEqual([path, 1, path === "/dashboard" ? statuses[0] : 200]);
  }
  await until(() => server.logged("request").filter(({ id }) => ids.includes(String(id))).length >= 30, "all lines");
  const lines = server.logged("request").filter(({ id }) => ids.includes(String(id)));
  expect(lines).toHaveLength(30);
  expect(await metric(server, /^headrace_http_requests_total\{.*chat.completions/)).toBe(before + 20);
});

test("applies a changed configuration in all workers after the reload", async () => {
  const { server, upstream } = await start();
  const tiers = (requests: number) =>
    `tiers: [{ name: enterprise, requests_per_minute: ${requests}, tokens_per_minute: null }]\n`;
  await server.reconfigure(upstreamYaml(upstream, tiers(5)));
  const statuses = counts(await Promise.all(Array.from({ length: 30 }, () => chat(server))));
  expect(statuses[200] ?? 0).toBeLessThanOrEqual(6);
  await server.reconfigure(upstreamYaml(upstream, tiers(100_000)));
  expect(counts(await Promise.all(Array.from({ length: 30 }, () => chat(server))))).toEqual({ 200: 30 });
});

test("serves models with policies, or whose fallback has some, only in the primary process", async () => {
  const place = "deployments: [{ upstream: up, model: upstream-model }]";
  const plain = `models:\n  - { id: plain, ${place} }\n`;
  const governed = (policies: string) =>
    `${plain}  - { id: governed, ${place}, policies: { ${policies} } }\n  - { id: beside, ${place}, fallbacks: [governed] }\n`;
  const { upstream, server } = await start(governed("continuation: true"));
  const servedByWorkers = async () => {
    const texts = (await server.workers?.metrics()) ?? [];
    const models = texts.flatMap((text) =>
      [...text.matchAll(/^headrace_inference_requests_total\{.*model="([^"]*)".*\} [1-9]/gm)].map(([, model]) => model),
    );
    return [...new Set(models)].sort();
  };
  const askAll = async () => {
    const asked = ["plain", "governed", "beside"].flatMap((model) => Array.from({ length: 15 }, () => model));
    expect(counts(await Promise.all(asked.map((model) => chat(server, { model }))))).toEqual({ 200: 45 });
  };
  await askAll();
  expect(await servedByWorkers()).toEqual(["plain", "upstream-model"]);
  const ofGoverned = /^headrace_inference_requests_total\{.*model="governed"/;
  expect(await metric(server, ofGoverned)).toBe(15);
  await server.reconfigure(upstreamYaml(upstream, governed("continuation: false")));
  await askAll();
  expect(await servedByWorkers()).toEqual(["beside", "governed", "plain", "upstream-model"]);
  await server.reconfigure(upstreamYaml(upstream, governed("continuation: true")));
  const before = await metric(server, ofGoverned);
  const inWorkers = async () =>
    ((await server.workers?.metrics()) ?? [])
      .join("\n")
      .split("\n")
      .filter((line) => ofGoverned.test(line));
  const counted = await inWorkers();
  await askAll();
  expect(await metric(server, ofGoverned)).toBe(before + 15);
  expect(await inWorkers()).toEqual(counted);
});

test("releases request bytes that a worker hands over, so that any number are served in sequence", async () => {
  const place = "deployments: [{ upstream: up, model: upstream-model }]";
  const governed = `models:\n  - { id: governed, ${place}, policies: { continuation: true } }\n`;
  // A key may hold a third of it, and 1.6 million bytes of that in each worker.
  const { server } = await start(`${governed}limits: { held_bytes: 16777216, body_bytes: 2097152 }\n`);
  const messages = [{ role: "user", content: "x".repeat(1_000_000) }];
  const statuses: number[] = [];
  for (let n = 0; n < 30; n++) statuses.push(await chat(server, { model: "governed", messages }));
  expect(counts(statuses)).toEqual({ 200: 30 });
});

test("serves cached answers of a key from the primary process, whichever worker it reaches", async () => {
  const { upstream, server } = await start();
  const { key } = await makeKey(server, { response_cache: "on" });
  const before = upstream.requests.length;
  const asked = { temperature: 0, messages: [{ role: "user", content: "Again and again" }] };
  expect(await chat(server, asked, key)).toBe(200);
  expect(counts(await Promise.all(Array.from({ length: 20 }, () => chat(server, asked, key))))).toEqual({ 200: 20 });
  expect(upstream.requests.length - before).toBe(1);
  expect(await metric(server, /^headrace_cache_requests_total\{.*result="hit"/)).toBe(20);
});

test("includes a previous worker's settled usage in a quota read during its replacement", async () => {
  const { server } = await start();
  const { id, key } = await makeKey(server, {});
  for (let round = 0; round < 5; round++) await Promise.all(Array.from({ length: 6 }, () => chat(server, {}, key)));
  // What was settled a moment ago is on their spools alone.
  for (const pid of server.workers?.pids ?? []) process.kill(pid, "SIGKILL");
  const chain = await server.governance.keys.findChainById(id);
  const limitId = chain?.keys[0].limitId ?? "";
  const owner = { type: "key", id: limitId, environment: "live", since: 0, until: 1e11 } as const;
  let requests = 0;
  const read = server.governance.summedLedger.readTotals.bind(server.governance.summedLedger);
  // On a busy machine their successors may not be there in time: then it is refused, never read without what they have.
  const isRead = () =>
    read(owner, (totals) => {
      requests = totals.requests;
    }).then(
      () => true,
      () => false,
    );
  await until(isRead, "it can be read");
  expect(requests).toBe(30);
});

test("starts a later worker with the current configuration, not the initial one", async () => {
  const { server, upstream } = await start();
  await server.reconfigure(
    upstreamYaml(upstream, "tiers: [{ name: enterprise, requests_per_minute: 5, tokens_per_minute: null }]\n"),
  );
  const counted = /^headrace_inference_requests_total/;
  const sum = await metric(server, counted);
  await killAll(server);
  // Prometheus would take a sum that falls for one that began anew, and count all of it again.
  expect(await metric(server, counted)).toBeGreaterThanOrEqual(sum);
  const statuses = counts(await Promise.all(Array.from({ length: 30 }, () => chat(server))));
  expect(statuses[200] ?? 0).toBeLessThanOrEqual(6);
});

test("rotates the secret for a key that only workers use", async () => {
  const [older, newer] = ["aa".repeat(32), "bb".repeat(32)];
  const directory = mkdtempSync(join(tmpdir(), "headrace-test-"));
  const before = await start("", { dataDir: directory }, { HEADRACE_SECRET: older });
  const { id, key } = await makeKey(before.server, {});
  const first = before.server.key;
  await before.server.close();
  const { server } = await start("", { dataDir: directory }, { HEADRACE_SECRET: `${newer},${older}` }, first);
  expect(counts(await Promise.all(Array.from({ length: 6 }, () => chat(server, {}, key))))).toEqual({ 200: 6 });
  await server.governance.secretRotation.renewals.close();
  const db = new Database(join(directory, "headrace.db"), { readonly: true });
  expect(db.query("SELECT secret_id FROM api_keys WHERE id = ?").get(id)).toEqual({
    secret_id: server.governance.secretId,
  });
  db.close();
  rmSync(directory, { recursive: true, force: true });
});

test("restarts a worker that cannot start until it can", async () => {
  const { server } = await start();
  const file = join(server.dataDir, "headrace.db");
  renameSync(file, `${file}.away`);
  for (const pid of server.workers?.pids ?? []) process.kill(pid, "SIGKILL");
  await until(() => server.logged("worker_not_started").length >= 3, "they cannot");
  renameSync(`${file}.away`, file);
  await until(() => server.workers?.pids.length === 3, "they are there again");
  await served(server);
  expect(counts(await Promise.all(Array.from({ length: 12 }, () => chat(server))))).toEqual({ 200: 12 });
});

test("books nothing from a worker that starts on another installation's PostgreSQL", async () => {
  const url = await freshDatabase();
  await using db = new SQL(url, { max: 1 });
  const { server } = await start("", {}, { HEADRACE_DATABASE_URL: url, HEADRACE_SECRET: "ab".repeat(32) });
  const booked = async () => Number((await db`SELECT count(*) AS n FROM usage_records`)[0].n);
  await flushed(server);
  const before = await booked();
  const [own] = await db`SELECT value FROM installation WHERE name = 'id'`;
  await db`UPDATE installation SET value = 'inst_another' WHERE name = 'id'`;
  expect(counts(await Promise.all(Array.from({ length: 12 }, () => chat(server))))).toEqual({ 200: 12 });
  for (const pid of server.workers?.pids ?? []) process.kill(pid, "SIGKILL");
  // Workers that could start would book the records that the earlier workers left.
  await until(
    async () => server.logged("worker_not_started").length > 0 || (await booked()) > before,
    "others start on the other database",
  );
  expect(await booked()).toBe(before);
  await db`UPDATE installation SET value = ${own.value} WHERE name = 'id'`;
  await until(async () => (await booked()) === before + 12, "all of them are booked");
}, 60_000);

test("keeps workers running through changed models and configuration while the database is away", async () => {
  await using postgres = await startPostgres();
  const { server, upstream } = await start("", {}, await onPostgres(postgres));
  const pids = server.workers?.pids;
  await postgres.pause();
  try {
    await until(() => server.logged("key_store_unreachable").length === 4, "the primary process and all workers know");
    await server.reconfigure(upstreamYaml(upstream, "models: [{ id: other, deployments: [{ upstream: up }] }]\n"));
    await Bun.sleep(1_500);
    expect(counts(await Promise.all(Array.from({ length: 12 }, () => chat(server))))).toEqual({ 200: 12 });
    expect(server.logged("worker_killed")).toEqual([]);
    expect(server.workers?.pids).toEqual(pids as number[]);
  } finally {
    await postgres.resume();
  }
}, 60_000);

async function onPostgres(postgres: PostgresServer): Promise<Record<string, string>> {
  return { HEADRACE_DATABASE_URL: await postgres.emptyDatabase(), HEADRACE_SECRET: "ab".repeat(32) };
}

/** Resolves once others have taken the places of all workers. */
async function killAll(server: TestServer): Promise<void> {
  const before = server.workers?.pids ?? [];
  for (const pid of before) process.kill(pid, "SIGKILL");
  await until(() => server.workers?.pids.every((pid) => !before.includes(pid)), "they are replaced");
  await served(server);
}

test("refuses a second server's port although workers share it", async () => {
  const { server } = await start();
  await expect(startHeadrace({ flags: { port: String(server.port), workers: "2" } })).rejects.toMatchObject({
    code: "EADDRINUSE",
  });
  await expect(startHeadrace({ flags: { port: String(server.port) } })).rejects.toMatchObject({ code: "EADDRINUSE" });
});
