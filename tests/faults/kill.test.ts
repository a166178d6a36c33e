// `kill -9` of the server at random moments of mixed traffic: no ledger row is lost, none is doubled, none too small.
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { startUpstream } from "../support/scripted-upstream.ts";

const cycles = long ? 200 : 10;
const clients = 24;
const root = join(import.meta.dir, "..", "..");
const directory = mkdtempSync(join(tmpdir(), "headrace-kill-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** What the model server did for one request of the gateway. */
interface Generated {
  times: number;
  /** Completion tokens that it generated, and whether it came to its end. */
  tokens: number;
  finished: boolean;
}

/** Answers with as many tokens as the request's `max_tokens`, one a piece; streams take their time. */
async function startCountingUpstream() {
  const generated = new Map<string, Generated>();
  const server = createServer(async (req, res) => {
    if (req.method === "GET") {
      res.setHeader("content-type", "application/json");
      res.end(
        JSON.stringify({ object: "list", data: [{ id: "counted", object: "model", created: 1, owned_by: "t" }] }),
      );
      return;
    }
    if (req.url !== "/v1/chat/completions") {
      res.writeHead(404).end();
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of req) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as { max_tokens: number; stream?: boolean };
    const id = String(req.headers["x-request-id"]);
    const record = generated.get(id) ?? { times: 0, tokens: 0, finished: false };
    record.times++;
    generated.set(id, record);
    res.on("error", () => {});
    await (body.stream ? stream : whole)(res, body.max_tokens, record);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { generated, server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` };
}

const names = { id: "c", created: 1, model: "counted" };
const usageOf = (tokens: number) => ({ prompt_tokens: 11, completion_tokens: tokens, total_tokens: 11 + tokens });

async function whole(res: ServerResponse, tokens: number, record: Generated): Promise<void> {
  await Bun.sleep(Math.random() * 15);
  record.tokens += tokens;
  record.finished = true;
  const choices = [
    { index: 0, message: { role: "assistant", content: "word ".repeat(tokens) }, finish_reason: "stop" },
  ];
  res.setHeader("content-type", "application/json");
  res.end(JSON.stringify({ ...names, object: "chat.completion", choices, usage: usageOf(tokens) }));
}

async function stream(res: ServerResponse, tokens: number, record: Generated): Promise<void> {
  res.setHeader("content-type", "text/event-stream");
  const send = (choices: unknown[], more = {}) =>
    res.write(`data: ${JSON.stringify({ ...names, object: "chat.completion.chunk", choices, ...more })}\n\n`);
  for (let token = 0; token < tokens && !res.destroyed; token++) {
    record.tokens++;
    send([{ index: 0, delta: { content: "word " }, finish_reason: null }]);
    await Bun.sleep(10);
  }
  if (res.destroyed) return;
  record.finished = true;
  send([{ index: 0, delta: {}, finish_reason: "stop" }]);
  send([], { usage: usageOf(tokens) });
  res.end("data: [DONE]\n\n");
}

/** What a client got of one request. */
interface Received {
  id: string;
  tokens: number;
  whole: boolean;
  /** Tokens it had a checkpoint's distance before the end, when the server must have noted them. */
  tokensAtCheckpoint: number;
}

/** One request of a random kind; what is received is noted as it comes, as the server may die at any moment. */
async function oneRequest(baseUrl: string, key: string, received: Received[]): Promise<void> {
  const streamed = Math.random() < 0.5;
  const tokens = 1 + Math.floor(Math.random() * (streamed ? 200 : 50));
  const leave = Math.random() < 0.15 ? AbortSignal.timeout(Math.random() * 300) : undefined;
  const response = await fetch(`${baseUrl}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "counted",
      messages: [{ role: "user", content: "Count." }],
      max_tokens: tokens,
      stream: streamed,
    }),
    ...(leave ? { signal: leave } : {}),
  });
  if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
  const mine: Received = {
    id: response.headers.get("x-request-id") ?? "",
    tokens: 0,
    whole: false,
    tokensAtCheckpoint: 0,
  };
  received.push(mine);
  if (!streamed) {
    mine.tokens = ((await response.json()) as { usage: { completion_tokens: number } }).usage.completion_tokens;
    mine.whole = true;
    return;
  }
  const decoder = new TextDecoder();
  const history: { at: number; tokens: number }[] = [];
  for await (const bytes of response.body ?? []) {
    const text = decoder.decode(bytes, { stream: true });
    mine.tokens += text.split('"word "').length - 1;
    if (text.includes("[DONE]")) mine.whole = true;
    history.push({ at: performance.now(), tokens: mine.tokens });
    // The first piece is noted at once, later ones at least every second, and a moment passes until it is there.
    mine.tokensAtCheckpoint = history.findLast((entry) => entry.at < performance.now() - 1_200)?.tokens ?? 0;
  }
}

interface Running {
  process: Bun.Subprocess<"ignore", "pipe", "pipe">;
  baseUrl: string;
}

async function startServer(config: string, dataDir: string): Promise<Running> {
  const args = ["serve", "--port", "0", "--config", config, "--data-dir", dataDir, "--no-demo", "--no-discover-local"];
  const child = Bun.spawn([process.execPath, join(root, "src", "main.ts"), ...args, "--log-format", "json"], {
    cwd: directory,
    env: { PATH: "/usr/bin:/bin", HOME: directory, BUN_CONFIG_MAX_HTTP_REQUESTS: "65535" },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let text = "";
  const decoder = new TextDecoder();
  void (async () => {
    for await (const bytes of child.stdout) text += decoder.decode(bytes, { stream: true });
  })();
  const baseUrl = await until(
    () => {
      if (child.exitCode !== null) throw new Error(`The server ended: ${text}`);
      return /"base_url":"([^"]+)"/.exec(text)?.[1];
    },
    "the server listens",
    20_000,
  );
  return { process: child, baseUrl };
}

// hardening: F1
test(`keeps exactly one sufficient row per request that a model server saw over ${cycles} kills under mixed load`, async () => {
  const upstream = await startCountingUpstream();
  const dataDir = join(directory, "data");
  const config = join(directory, "headrace.yaml");
  writeFileSync(config, `upstreams: [{ name: counting, url: "${upstream.url}" }]\n`);
  const received: Received[] = [];
  try {
    for (let cycle = 0; cycle < cycles; cycle++) {
      const server = await startServer(config, dataDir);
      const { api_key: key } = await Bun.file(join(dataDir, "credentials.json")).json();
      let stopped = false;
      const load = Array.from({ length: clients }, async () => {
        while (!stopped) {
          // The server dies under some of them, and some leave by themselves.
          await oneRequest(server.baseUrl, key, received).catch((error: unknown) => {
            if (/^\d{3} /.test(String((error as Error).message))) throw error;
          });
        }
      });
      await Bun.sleep(50 + Math.random() * (cycle % 5 === 4 ? 2_500 : 500));
      server.process.kill("SIGKILL");
      stopped = true;
      await server.process.exited;
      await Promise.all(load);
    }
    // The last start takes up what the last death left behind; an orderly end writes everything down.
    const last = await startServer(config, dataDir);
    last.process.kill("SIGTERM");
    expect(await last.process.exited).toBe(0);
    compare(upstream.generated, received, dataDir);
    expect(readdirSync(join(dataDir, "spool"))).toEqual([]);
  } finally {
    upstream.server.closeAllConnections();
    upstream.server.close();
  }
}, 600_000);

interface Row {
  request_id: string;
  outcome: string;
  prompt_tokens: number;
  completion_tokens: number;
}

function compare(generated: ReadonlyMap<string, Generated>, received: readonly Received[], dataDir: string): void {
  const db = new Database(join(dataDir, "headrace.db"), { readonly: true });
  const rows = db
    .query("SELECT request_id, outcome, prompt_tokens, completion_tokens FROM usage_records")
    .all() as Row[];
  const byId = new Map(rows.map((row) => [row.request_id, row]));
  const sums = db
    .query(
      `SELECT count(*) AS requests, sum(prompt_tokens) AS prompt_tokens, sum(completion_tokens) AS completion_tokens,
        sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END) AS errors, count(first_token_ms) AS timed,
        sum(first_token_ms) AS first_token_ms,
        sum(CASE WHEN duration_ms > first_token_ms THEN max(completion_tokens - 1, 0) END) AS generated_tokens,
        sum(max(duration_ms - first_token_ms, 0)) AS generation_ms, min(at) AS first_at, max(at) AS last_at
      FROM usage_records`,
    )
    .get() as Record<string, number>;
  const rolledUp = db
    .query(
      `SELECT sum(requests) AS requests, sum(prompt_tokens) AS prompt_tokens, sum(completion_tokens) AS completion_tokens,
        sum(errors) AS errors, sum(timed) AS timed, sum(first_token_ms) AS first_token_ms,
        sum(generated_tokens) AS generated_tokens, sum(generation_ms) AS generation_ms, min(first_at) AS first_at,
        max(last_at) AS last_at
      FROM usage_rollups GROUP BY span`,
    )
    .all();
  const totals = db
    .query("SELECT kind, span, sum(requests) AS requests FROM usage_totals WHERE account_id = '' GROUP BY kind, span")
    .all() as { kind: string; requests: number }[];
  db.close();

  const lost = [...generated.keys()].filter((id) => !byId.has(id));
  const repeated = [...generated.values()].filter(({ times }) => times > 1);
  const incomplete = received.filter(({ id, whole, tokens }) => {
    const row = byId.get(id);
    return whole && (row?.outcome !== "completed" || row.completion_tokens !== tokens || row.prompt_tokens !== 11);
  });
  const tooLittle = received.filter((one) => (byId.get(one.id)?.completion_tokens ?? -1) < one.tokensAtCheckpoint);
  const tooMuch = rows.filter((row) => row.completion_tokens > (generated.get(row.request_id)?.tokens ?? 0));
  expect({ lost, repeated, incomplete, tooLittle, tooMuch }).toEqual({
    lost: [],
    repeated: [],
    incomplete: [],
    tooLittle: [],
    tooMuch: [],
  });
  // A request may die between its first line in the ledger and the model server: those rows cost nothing. Of one whose client
  // left at the moment in which it was sent nobody can know how far it came: it may cost its prompt, "Count.", by estimate.
  for (const row of rows.filter(({ request_id }) => !generated.has(request_id))) {
    expect(row.completion_tokens).toBe(0);
    expect(row.prompt_tokens).toBeLessThanOrEqual(row.outcome === "cancelled" ? 2 : 0);
  }
  expect(sums["timed"]).toBeGreaterThan(0);
  expect(rolledUp).toEqual([sums, sums]);
  expect(totals).toHaveLength(12);
  for (const total of totals) expect(total).toEqual({ ...total, requests: sums["requests"] ?? 0 });
  const interrupted = rows.filter((row) => row.outcome === "interrupted").length;
  expect(interrupted).toBeGreaterThan(0);
  console.log(
    `${cycles} kills: ${generated.size} requests at the model server, ${rows.length} rows, ${received.filter((one) => one.whole).length} delivered whole, ${interrupted} interrupted`,
  );
}

test("records reported cached, written and reasoning tokens of a stream that kill -9 cut", async () => {
  await using upstream = await startUpstream((_, res) => {
    res.writeHead(200, { "content-type": "text/event-stream" });
    const reported = {
      ...{ prompt_tokens: 900, completion_tokens: 40, total_tokens: 940, service_tier: "flex" },
      prompt_tokens_details: { cached_tokens: 700, cache_write_tokens: 100 },
      completion_tokens_details: { reasoning_tokens: 30 },
    };
    // vLLM's `continuous_usage_stats` tell it so.
    const choices = [{ index: 0, delta: { role: "assistant", content: "word " }, finish_reason: null }];
    res.write(`data: ${JSON.stringify({ ...names, object: "chat.completion.chunk", choices, usage: reported })}\n\n`);
  });
  const dataDir = join(directory, "parts");
  const config = join(directory, "parts.yaml");
  const price = "{ input: 1, cached_input: 0.1, cache_write: 2, output: 10 }";
  const model = `{ id: priced, price: ${price}, deployments: [{ upstream: scripted, model: upstream-model }] }`;
  writeFileSync(config, `upstreams: [{ name: scripted, url: "${upstream.url}" }]\nmodels: [${model}]\n`);
  const server = await startServer(config, dataDir);
  const { api_key: key } = await Bun.file(join(dataDir, "credentials.json")).json();
  const response = await fetch(`${server.baseUrl}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "priced", messages: [{ role: "user", content: "Count." }], stream: true }),
  });
  const reader = response.body?.getReader();
  await reader?.read();
  // The first piece is noted at once.
  await Bun.sleep(100);
  server.process.kill("SIGKILL");
  await server.process.exited;
  await reader?.cancel().catch(() => {});
  const last = await startServer(config, dataDir);
  last.process.kill("SIGTERM");
  expect(await last.process.exited).toBe(0);
  const db = new Database(join(dataDir, "headrace.db"), { readonly: true });
  expect(db.query("SELECT * FROM usage_records").all()).toMatchObject([
    {
      ...{ outcome: "interrupted", prompt_tokens: 900, completion_tokens: 40 },
      ...{ cached_tokens: 700, cache_write_tokens: 100, reasoning_tokens: 30 },
      nano_usd: 100 * 1_000 + 700 * 100 + 100 * 2_000 + 40 * 10_000,
    },
  ]);
  db.close();
}, 60_000);
