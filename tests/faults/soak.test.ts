// Mixed traffic for a long time: memory stays flat, nothing is left open or set aside, and the ledger is exact.
import { Database } from "bun:sqlite";
import { afterAll, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { estimatePromptTokens } from "../../src/requests/dialects/prompt-tokens.ts";
import { runCommand } from "../fixtures/command-line.ts";
import type { Asked, SoakPlan, SoakResult } from "../fixtures/soak-clients.ts";
import { setUp } from "../support/browser.ts";
import {
  type CountingUpstream,
  type Generated,
  type Order,
  orderText,
  promptTokens,
  startCountingUpstream,
} from "../support/counting-upstream.ts";
import { until } from "../support/headrace.ts";
import { long, withinMs } from "../support/long.ts";
import { registerApp, signInTo } from "../support/oauth-apps.ts";
import { makeOperatorKey } from "../support/operator-key.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";

/** `SOAK_SECONDS=120 npm run test:long -- tests/faults/soak.test.ts` for another time, `SOAK_RATE` for another load. */
const seconds = Number(process.env["SOAK_SECONDS"] ?? (long ? 600 : 3));
const warmUpSeconds = long ? 20 : 1.5;
const rate = Number(process.env["SOAK_RATE"] ?? 120);
const sampleMs = long ? 2_000 : 250;
const reloadMs = long ? 5_000 : 700;
/** The last third of the time in relation to the middle third; a short run still warms up. */
const flatness = 1.05;
const quota = 50_000_000;
const shaky = ["shaky-0", "shaky-1", "shaky-2", "shaky-3", "shaky-4", "shaky-5"];

const directory = mkdtempSync(join(tmpdir(), "headrace-soak-"));
const dataDir = join(directory, "data");
const config = join(directory, "headrace.yaml");
const heapFile = join(directory, "heap.json");
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function yaml(upstream: CountingUpstream, edit: number): string {
  const one = (name: string, more = "") => `  - { name: ${name}, url: "${upstream.url(name)}"${more} }\n`;
  const spread = shaky.slice(0, 2 + (edit % 3)).map((name) => `{ upstream: ${name}, model: ${name}-model }`);
  return [
    "upstreams:\n",
    one("steady"),
    one("narrow", ", max_concurrency: 3"),
    ...shaky.map((name) => one(name, ", timeout_seconds: 1, idle_seconds: 1")),
    `models:\n  - { id: spread, deployments: [${spread.join(", ")}] }\n`,
    `  - { id: edited-${edit}, deployments: [{ upstream: steady, model: steady-model }] }\n`,
    "tiers: [{ name: enterprise, requests_per_minute: null, tokens_per_minute: 100000000, environments: [dev] }]\n",
  ].join("");
}

interface Heap {
  heapSize: number;
  objectCount: number;
  objectTypeCounts: Record<string, number>;
}

/** What the process has open, by kind; the files of the spool come and go. */
function descriptors(pid: number): Record<string, number> {
  const kinds: Record<string, number> = {};
  for (const name of readdirSync(`/proc/${pid}/fd`)) {
    let target: string;
    try {
      target = readlinkSync(`/proc/${pid}/fd/${name}`);
    } catch {
      continue;
    }
    const kind = target.includes("/spool/") ? "spool" : target.replace(/^(socket|pipe):\[\d+\]$/, "$1");
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  return kinds;
}

const rssOf = (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1024;

const median = (values: readonly number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

// hardening: F34
test(
  `leaves nothing behind after ${seconds} s of mixed traffic, with every request in the ledger once`,
  async () => {
    await using upstream = await startCountingUpstream();
    writeFileSync(config, yaml(upstream, 0));
    await using server = await startServerProcess({
      ...{ dataDir, config, env: { SOAK_HEAP_FILE: heapFile } },
      preload: join(import.meta.dir, "..", "fixtures", "live-heap.ts"),
    });
    const { pid } = server.process;
    const world = await begin(server);
    const { operator } = world;

    /** With a connection of its own, so that none of ours is open when theirs are counted. */
    const ask = async (path: string, { key = operator, body }: { key?: string; body?: unknown } = {}) => {
      const response = await fetch(server.url + path, {
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${key}`, connection: "close", "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: await response.json() };
    };
    const system = async () => (await ask("/v1/admin/system")).body;
    /** Until nothing runs and waits any more, and every idle connection is gone. */
    const quiet = async () => {
      await until(
        async () => {
          const { requests, spool } = await system();
          return requests.open === 0 && requests.waiting === 0 && spool.pending === 0;
        },
        "no request is open, none waits, all usage is booked",
        20_000,
      );
      await until(async () => {
        const { data } = (await ask("/v1/admin/upstreams")).body as { data: { running: number; waiting: number }[] };
        return data.every(({ running, waiting }) => running === 0 && waiting === 0);
      }, "no place is taken");
      upstream.hangUp();
    };
    const heap = async (): Promise<Heap> => {
      rmSync(heapFile, { force: true });
      server.process.kill("SIGUSR2");
      await until(() => existsSync(heapFile), "the heap is told");
      return (await Bun.file(heapFile).json()) as Heap;
    };
    let refreshToken = world.refreshToken;
    const traffic = async (during: number, seed: number): Promise<SoakResult> => {
      const plan: SoakPlan = {
        ...{ url: server.url, seconds: during, rate, clients: 64, seed, app: world.app, refreshToken },
        ...{ keys: world.keys.map(({ key }) => key), limitedKey: world.limitedKey, managerKey: world.managerKey },
        ...{ steady: "steady", narrow: "narrow", shaky, out: join(directory, `result-${seed}.json`) },
      };
      const file = join(directory, `plan-${seed}.json`);
      writeFileSync(file, JSON.stringify(plan));
      const program = join(import.meta.dir, "..", "fixtures", "soak-clients.ts");
      const clients = Bun.spawn([process.execPath, program, file], { stdout: "inherit", stderr: "inherit" });
      expect(await clients.exited).toBe(0);
      const result = (await Bun.file(plan.out).json()) as SoakResult;
      refreshToken = result.refreshToken;
      return result;
    };

    const warmUp = await traffic(warmUpSeconds, 1);
    await quiet();
    const heapBefore = await heap();
    const openBefore = descriptors(pid);

    const rss: number[] = [];
    const delays: { mean_delay_ms: number; max_delay_ms: number }[] = [];
    let edits = 0;
    const sampling = setInterval(() => {
      rss.push(rssOf(pid));
      void system().then(({ event_loop }) => delays.push(event_loop));
    }, sampleMs);
    const editing = setInterval(() => {
      writeFileSync(config, yaml(upstream, ++edits));
      server.process.kill("SIGHUP");
    }, reloadMs);
    const main = await traffic(seconds, 2);
    clearInterval(sampling);
    clearInterval(editing);
    await quiet();

    const seen = [...warmUp.asked, ...main.asked];
    const violations = [...warmUp.violations, ...main.violations];
    const heapAfter = await heap();
    await until(() => moreThan(openBefore, descriptors(pid)).length === 0, "what was opened is closed").catch(() => {});
    const openAfter = descriptors(pid);
    const third = Math.floor(rss.length / 3);
    const thirds = [0, 1, 2].map((n) => median(rss.slice(n * third, (n + 1) * third)));
    const grown = Object.entries(heapAfter.objectTypeCounts)
      .map(([type, count]) => [type, count - (heapBefore.objectTypeCounts[type] ?? 0)] as const)
      .sort(([, a], [, b]) => b - a)
      .slice(0, 12);
    const counts = compare(upstream.generated, seen, dataDir);
    const unsettled = await setAside(world.keys, ask);
    const maxDelayMs = Math.max(...delays.map(({ max_delay_ms }) => max_delay_ms));
    const meanDelayMs = median(delays.map(({ mean_delay_ms }) => mean_delay_ms));
    const figures = {
      requests: seen.length,
      statuses: main.statuses,
      rssByThird: thirds.map(Math.round),
      heapMb: [heapBefore, heapAfter].map(({ heapSize }) => Math.round(heapSize / 1e4) / 100),
      grown: Object.fromEntries(grown),
      ...{ maxDelayMs, meanDelayMs },
      reloads: server.log().split('"configuration_reloaded"').length - 1,
      ...{ openBefore, openAfter, ...counts },
    };
    if (long) console.log(figures);
    if (long) {
      const [, middle = 0, last = 0] = thirds;
      expect(last / middle).toBeLessThan(flatness);
    }
    // What is remembered within bounds, such as tokens, may grow; what each request left behind would be many times this.
    expect(heapAfter.heapSize / heapBefore.heapSize).toBeLessThan(1.5);
    expect(maxDelayMs).toBeLessThan(withinMs(2_000));
    expect(meanDelayMs).toBeLessThan(withinMs(50));
    expect(violations.slice(0, 20)).toEqual([]);
    expect(counts.wrong).toEqual([]);
    expect(unsettled).toEqual([]);
    expect(moreThan(openBefore, openAfter)).toEqual([]);
    expect(server.log()).not.toContain('"internal_error"');
    expect(server.log()).not.toContain('"level":"error"');
  },
  (seconds + warmUpSeconds) * 1_000 + 120_000,
);

const eventLoop = ["anon_inode:[eventpoll]", "anon_inode:[eventfd]"];

/**
 * What of `after` was not open before, in words. One file of the spool may be; and a connection to SQLite opens the log when
 * it first reads, so of that there may be as many as there are connections. The thread of checkpoints, which comes and goes
 * with the size of the log, has an event loop and a connection of its own.
 */
function moreThan(before: Record<string, number>, after: Record<string, number>): string[] {
  const hasThread = eventLoop.every((kind) => after[kind] === (before[kind] ?? 0) + 1);
  const most = (kind: string): number => {
    const was = (before[kind] ?? 0) + (hasThread && (eventLoop.includes(kind) || kind.endsWith(".db")) ? 1 : 0);
    if (kind === "spool") return was + 1;
    return kind.endsWith("-wal") ? Math.max(was, most(kind.slice(0, -"-wal".length))) : was;
  };
  return Object.entries(after)
    .filter(([kind, count]) => count > most(kind))
    .map(([kind, count]) => `${kind}: ${count}, were ${before[kind] ?? 0}`);
}

async function begin(server: ServerProcess) {
  const first = String((await Bun.file(join(dataDir, "credentials.json")).json()).api_key);
  const make = async (settings: Record<string, unknown>) => {
    const response = await fetch(`${server.url}/v1/keys`, {
      method: "POST",
      headers: { authorization: `Bearer ${first}`, "content-type": "application/json", connection: "close" },
      body: JSON.stringify({ name: "Soak", ...settings }),
    });
    if (!response.ok) throw new Error(await response.text());
    return (await response.json()) as MadeKey;
  };
  const scopes = ["chat:write", "chat:read", "models:read", "usage:read"];
  const keys: MadeKey[] = [];
  for (let i = 0; i < 6; i++) keys.push(await make({ scopes, monthly_tokens: quota }));
  const { key: limitedKey } = await make({ scopes, rate_limit: 20, rate_limit_window: 10 });
  const operator = await makeOperatorKey(dataDir);
  const link = await runCommand(["setup-link", "--data-dir", dataDir, "--quiet", "--base-url", server.baseUrl]);
  const person = await setUp({ url: server.url, setupLink: link.stdout.trim() });
  const app = await registerApp({ url: server.url, key: first });
  const { refresh_token: refreshToken } = await signInTo(app, server, person);
  return { keys, limitedKey, managerKey: first, operator, app, refreshToken };
}

/**
 * Keys of which more is set aside than what was used: exactly what is left of its quota must be granted to a request, and
 * to the next one nothing above it.
 */
async function setAside(
  keys: readonly MadeKey[],
  ask: (path: string, more: { key?: string; body?: unknown }) => Promise<{ status: number }>,
): Promise<unknown[]> {
  const db = new Database(join(dataDir, "headrace.db"), { readonly: true });
  const usedBy = db.query<{ used: number }, [string]>(
    "SELECT sum(prompt_tokens + completion_tokens) AS used FROM usage_records WHERE key_id = ?",
  );
  const wrong: unknown[] = [];
  for (const { id, key } of keys) {
    const used = usedBy.get(id)?.used ?? 0;
    const granted: Order = { mark: `left of ${id}`, tokens: 1 };
    const takes = async (left: number) => {
      const messages = [{ role: "user", content: orderText(granted) }];
      const max_tokens = left - estimatePromptTokens("messages", { messages });
      return (await ask("/v1/chat/completions", { key, body: { model: "steady-model", messages, max_tokens } })).status;
    };
    const statuses = [
      await takes(quota - used + 1),
      await takes(quota - used),
      await takes(quota - used - promptTokens - granted.tokens + 1),
    ];
    if (used === 0 || statuses.join() !== "403,200,403") wrong.push({ id, used, statuses });
  }
  db.close();
  return wrong;
}

interface MadeKey {
  id: string;
  key: string;
}

interface Row {
  request_id: string;
  outcome: string;
  prompt_tokens: number;
  completion_tokens: number;
  estimated: number;
}

function compare(generated: ReadonlyMap<string, Generated>, asked: readonly Asked[], dir: string) {
  const db = new Database(join(dir, "headrace.db"), { readonly: true });
  const rows = db
    .query<Row, []>("SELECT request_id, outcome, prompt_tokens, completion_tokens, estimated FROM usage_records")
    .all();
  const rolledUp = db
    .query<{ n: number; c: number }, []>(
      "SELECT sum(requests) AS n, sum(completion_tokens) AS c FROM usage_rollups GROUP BY span",
    )
    .all();
  db.close();
  const byId = new Map(rows.map((row) => [row.request_id, row]));
  const idsOfMark = new Map([...generated].map(([id, { mark }]) => [mark, id]));
  const wrong: unknown[] = [];
  const outcomes: Record<string, number> = {};
  for (const [id] of generated) if (!byId.has(id)) wrong.push({ lost: id });
  for (const one of asked) {
    const id = idsOfMark.get(one.mark) ?? one.id;
    const made = generated.get(id);
    const row = byId.get(id);
    const fault = faultOf(one, made, row);
    if (fault !== undefined) wrong.push({ fault, one, made, row });
    const outcome = row?.outcome ?? "no row";
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
  }
  const completion = rows.reduce((sum, row) => sum + row.completion_tokens, 0);
  for (const { n, c } of rolledUp) if (n !== rows.length || c !== completion) wrong.push({ rolledUp });
  return { rows: rows.length, atUpstream: generated.size, outcomes, wrong: wrong.slice(0, 10) };
}

/** What is wrong with the ledger's row of one request, if anything. */
function faultOf(one: Asked, made: Generated | undefined, row: Row | undefined): string | undefined {
  if (made && one.id !== "" && !row) return "no row";
  if (one.whole) {
    if (row?.outcome !== "completed" || row.estimated !== 0) return "not completed";
    if (made?.times !== 1) return "not once at the upstream";
    if (row.completion_tokens !== made.completionTokens || row.prompt_tokens !== promptTokens) return "other tokens";
    if (one.kind !== "embedding" && row.completion_tokens !== one.tokens) return "other tokens than delivered";
    return undefined;
  }
  if (!row) return [400, 401, 403, 404, 429, 0].includes(one.status) ? undefined : "no row of an admitted one";
  const most = made?.completionTokens ?? 0;
  if (row.completion_tokens < one.tokens) return "less than delivered";
  if (row.completion_tokens > most) return "more than generated";
  if (row.outcome === "completed") {
    if (!one.left) return "completed, but the client did not get it";
    return row.completion_tokens === most ? undefined : "completed with other tokens";
  }
  if (row.outcome === "cancelled") return one.left ? undefined : "cancelled, but the client stayed";
  if (row.outcome !== "failed") return "an outcome that is none here";
  if (one.left) return undefined;
  return row.completion_tokens === one.tokens ? undefined : "other tokens than delivered before the failure";
}
