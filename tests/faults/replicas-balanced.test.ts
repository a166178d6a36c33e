// Three replicas behind the nginx site of deploy/, each in turn with a fault of its own under load: what another replica could have answered is answered.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../fixtures/command-line.ts";
import { type CutLink, startCutLink } from "../support/cut-link.ts";
import { until } from "../support/headrace.ts";
import { long } from "../support/long.ts";
import { freePort, type NginxSite, prepareNginxSite } from "../support/nginx-site.ts";
import { type PostgresServer, startPostgres } from "../support/postgres.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { chatScript, type ScriptedUpstream, startUpstream, upstreamYaml } from "../support/scripted-upstream.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

/** How long a fault lasts under load, and how often each one comes. */
const faultMs = long ? 20_000 : 2_500;
const clients = 12;
const rollingRestarts = long ? 10 : 1;
/** The usual 5 s in the long form. */
const lameDuck = long ? [] : ["--lame-duck-seconds", "1"];
const canMount = process.platform === "linux" && process.getuid?.() === 0 && Bun.which("mount") !== null;

const directory = mkdtempSync(join(tmpdir(), "headrace-balanced-"));
const disk = join(directory, "disk");
const config = join(directory, "headrace.yaml");
const secret = randomBytes(32).toString("hex");
let postgres: PostgresServer;
let redis: RedisServer;
let upstream: ScriptedUpstream;
let site: NginxSite;
let databaseUrl: string;
let operator: string;
let keys: string[];

interface Replica {
  port: number;
  dataDir: string;
  toPostgres: CutLink;
  toRedis: CutLink;
  process: ServerProcess;
}
const replicas: Replica[] = [];

async function start({ port, dataDir, toPostgres, toRedis }: Omit<Replica, "process">): Promise<ServerProcess> {
  const through = (url: string, link: CutLink) => {
    const own = new URL(url);
    own.port = String(link.port);
    return own.href;
  };
  return startServerProcess({
    ...{ config, dataDir },
    args: ["--mode", "production", "--public-url", site.url, "--port", String(port), ...lameDuck],
    env: {
      HEADRACE_DATABASE_URL: through(databaseUrl, toPostgres),
      HEADRACE_REDIS_URL: through(redis.url, toRedis),
      HEADRACE_SECRET: secret,
    },
  });
}

beforeAll(async () => {
  [postgres, redis, upstream, site] = await Promise.all([
    startPostgres(),
    startRedis(),
    startUpstream(chatScript()),
    prepareNginxSite(),
  ]);
  databaseUrl = await postgres.freshDatabase();
  writeFileSync(
    config,
    upstreamYaml(upstream, "tiers: [{ name: enterprise, requests_per_minute: null, tokens_per_minute: null }]\n"),
  );
  if (canMount) {
    Bun.spawnSync(["mkdir", disk]);
    const mounted = Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk]);
    if (!mounted.success) throw new Error(mounted.stderr.toString());
  }
  for (const index of [0, 1, 2]) {
    const [port, toPostgres, toRedis] = await Promise.all([
      freePort(),
      startCutLink(Number(new URL(databaseUrl).port)),
      startCutLink(redis.port),
    ]);
    const dataDir = index === 0 && canMount ? join(disk, "data") : join(directory, `data-${index}`);
    const parts = { port, dataDir, toPostgres, toRedis };
    replicas.push({ ...parts, process: await start(parts) });
  }
  await site.start(replicas.map(({ port }) => port));
  const env = { HEADRACE_DATABASE_URL: databaseUrl, HEADRACE_REDIS_URL: redis.url, HEADRACE_SECRET: secret };
  operator = (await runCommand(["operator-key", "--data-dir", at(1).dataDir, "--quiet"], { env })).stdout.trim();
  keys = await Promise.all(Array.from({ length: 6 }, async () => (await makeKey()).key));
  await allReady();
}, 60_000);

afterAll(async () => {
  for (const { process, toPostgres, toRedis } of replicas) {
    await process[Symbol.asyncDispose]();
    await toPostgres[Symbol.asyncDispose]();
    await toRedis[Symbol.asyncDispose]();
  }
  for (const part of [site, upstream, redis, postgres]) await part[Symbol.asyncDispose]();
  if (canMount) Bun.spawnSync(["umount", disk]);
  rmSync(directory, { recursive: true, force: true });
});

const at = (index: number) => replicas[index] as Replica;
const readinessOf = async ({ port }: Replica) => {
  const response = await fetch(`http://127.0.0.1:${port}/readyz`, { headers: { connection: "close" } });
  return { code: response.status, ...((await response.json()) as { status: string; checks: Record<string, string> }) };
};
const spoolOf = async (replica: Replica) => {
  const { code, status, checks } = await readinessOf(replica);
  return `${code} ${status} ${checks["spool"]}`;
};
const isReady = async (replica: Replica) => (await readinessOf(replica)).status === "ready";
const allReady = () =>
  Promise.all(replicas.map((replica) => until(() => isReady(replica), `${replica.port} is ready`, 20_000)));

const ask = (path: string, key: string, init: { method?: string; body?: object; url?: string } = {}) =>
  fetch(`${init.url ?? site.url}${path}`, {
    method: init.method ?? (init.body ? "POST" : "GET"),
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(init.body ? { body: JSON.stringify(init.body) } : {}),
  });

async function makeKey(): Promise<{ id: string; key: string }> {
  const body = { name: "x", scopes: ["chat:write"] };
  const response = await ask("/v1/keys", operator, { body, url: at(2).process.url });
  expect(response.status).toBe(200);
  return (await response.json()) as { id: string; key: string };
}

/** Chats by all keys, one in two as a stream, until it is stopped: how many were sent, and what went wrong with which. */
function load() {
  const faults: string[] = [];
  let sent = 0;
  let running = true;
  const one = async (index: number) => {
    const stream = sent++ % 2 === 0;
    const messages = [{ role: "user", content: "Hello" }];
    const body = { model: "upstream-model", stream, max_tokens: 9, messages };
    const response = await ask("/v1/chat/completions", keys[index % keys.length] ?? "", { body });
    const text = await response.text();
    const isWhole = stream ? text.endsWith("data: [DONE]\n\n") : text.includes('"finish_reason":"stop"');
    if (response.status !== 200 || !isWhole) faults.push(`${response.status} ${text.slice(0, 200)}`);
  };
  const done = Array.from({ length: clients }, async (_, index) => {
    while (running) await one(index).catch((error: unknown) => faults.push(String(error)));
  });
  return {
    faults,
    sent: () => sent,
    async stop(what: string) {
      running = false;
      await Promise.all(done);
      console.log(`${what}: ${faults.length} of ${sent} requests failed`);
    },
  };
}

async function under(what: string, fault: () => Promise<void>): Promise<string[]> {
  const chats = load();
  await until(() => chats.sent() > 10 * clients, "it is under load");
  try {
    await fault();
  } finally {
    await chats.stop(what);
  }
  return chats.faults;
}

function fillDisk(): void {
  for (const size of [65_536, 4_096, 1, 1]) {
    try {
      for (;;) writeFileSync(join(disk, `filler-${Math.random()}`), new Uint8Array(size));
    } catch {
      // Smaller ones may have room still.
    }
  }
}

function emptyDisk(): void {
  for (const name of readdirSync(disk)) if (name.startsWith("filler-")) rmSync(join(disk, name));
}

// hardening: F20
test.skipIf(!canMount)(
  "fails no request while one replica's disk is full, and reports that replica as not ready",
  async () => {
    const faults = await under("full disk", async () => {
      try {
        fillDisk();
        // What the ledger has booked meanwhile frees some bytes again: the disk is full for good a little later.
        await until(
          async () => (await spoolOf(at(0))) === "503 not_ready failed",
          "it is not ready for want of its disk",
        );
        await Bun.sleep(faultMs);
      } finally {
        emptyDisk();
      }
      await until(() => isReady(at(0)), "it is ready by itself");
    });
    expect(faults).toEqual([]);
  },
  90_000,
);

// hardening: F30
test("fails no request while one replica is cut off from PostgreSQL and another revokes keys", async () => {
  const faults = await under("cut off from PostgreSQL", async () => {
    at(1).toPostgres.cut();
    const end = performance.now() + faultMs;
    while (performance.now() < end) {
      const { id } = await makeKey();
      const revoked = await ask(`/v1/keys/${id}`, operator, { method: "DELETE", url: at(2).process.url });
      expect(revoked.status).toBe(200);
      await Bun.sleep(200);
    }
    at(1).toPostgres.mend();
  });
  await allReady();
  expect(faults).toEqual([]);
}, 90_000);

// hardening: F30
test("fails no request while one replica is cut off from Redis", async () => {
  const faults = await under("cut off from Redis", async () => {
    at(2).toRedis.cut();
    await Bun.sleep(faultMs);
    at(2).toRedis.mend();
  });
  await allReady();
  expect(faults).toEqual([]);
}, 90_000);

// hardening: F30
test("fails no request while replicas are restarted by SIGTERM one after another", async () => {
  const faults = await under("rolling restart", async () => {
    for (let round = 0; round < rollingRestarts; round++) {
      for (const replica of replicas) {
        replica.process.process.kill("SIGTERM");
        expect(await replica.process.process.exited).toBe(0);
        replica.process = await start(replica);
        await until(() => isReady(replica), "it is back", 20_000);
      }
    }
  });
  expect(faults).toEqual([]);
}, 600_000);

// hardening: F30
test("fails only the requests taken by a replica that is killed", async () => {
  const faults = await under("kill -9", async () => {
    at(2).process.process.kill("SIGKILL");
    await at(2).process.process.exited;
    await Bun.sleep(faultMs);
    at(2).process = await start(at(2));
    await until(() => isReady(at(2)), "it is back", 20_000);
  });
  expect(faults.length).toBeLessThanOrEqual(clients);
}, 90_000);
