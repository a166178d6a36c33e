// What clients and model servers send without end: others are answered meanwhile, and memory stays within its bound.
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { makeOperatorKey } from "../../src/maintenance/operator-key.ts";
import { until } from "../support/headrace.ts";
import { long, withinMs } from "../support/long.ts";
import { startWatchedServer, type WatchedServer } from "../support/watched-server.ts";

/** Memory of the whole process, whatever is under way. */
const maxRssBytes = 400e6;
/** The time of a request beside it, at the 99th percentile; and of the event loop in one go, in processor time. */
const maxMs = 100;
/** The time after which clients try again once they had an error. */
const againMs = 100;
/** For how long each goes on. */
const underWayMs = long ? 10_000 : 1_500;

interface ModelServer extends AsyncDisposable {
  url: string;
}

let flooding: ModelServer;
let good: ModelServer;
let server: WatchedServer;
let otherKey: string;

beforeAll(async () => {
  flooding = await startFixture("flooding-server.ts", "floods");
  good = await startFixture("flooding-server.ts", "chat");
  server = await startWatchedServer({
    yaml: `upstreams:\n  - { name: flooding, url: "${flooding.url}" }\n  - { name: good, url: "${good.url}" }\n`,
  });
  const made = await server.request("/v1/keys", { body: { name: "beside" } });
  otherKey = ((await made.json()) as { key: string }).key;
});

afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await flooding[Symbol.asyncDispose]();
  await good[Symbol.asyncDispose]();
});

async function startFixture(file: string, ...words: string[]): Promise<ModelServer> {
  let url = "";
  const child = Bun.spawn([process.execPath, join(import.meta.dir, "..", "fixtures", file), ...words], {
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
    ipc: (reported: { url: string }) => {
      url = reported.url;
    },
  });
  await until(() => url, "the model server listens");
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
    },
  };
}

const chat = (model: string, more: object = {}) => ({ model, messages: [{ role: "user", content: "Hi" }], ...more });

interface Beside {
  healthMs: number;
  chatMs: number;
  peakRssBytes: number;
  stallMs: number;
  busyMs: number;
}

/** Requests beside what is under way, one after the other: how long those took that took longest. */
async function beside(what: string): Promise<Beside> {
  const health: number[] = [];
  const chats: number[] = [];
  const endMs = performance.now() + underWayMs;
  while (performance.now() < endMs) {
    health.push(await took(() => fetch(`${server.url}/healthz`)));
    chats.push(await took(() => server.request("/v1/chat/completions", { body: chat("chat"), key: otherKey })));
    // An address may ask so often without a key.
    await Bun.sleep(20);
  }
  const { peakRssBytes, stallMs, busyMs } = await server.figures();
  const figures = { healthMs: highest(health), chatMs: highest(chats), peakRssBytes, stallMs, busyMs };
  console.log(
    `${what}: /healthz ${figures.healthMs.toFixed(1)} ms, chat ${figures.chatMs.toFixed(1)} ms at p99 of ${health.length}, stalled ${stallMs.toFixed(0)} ms, busy ${busyMs.toFixed(0)} ms, ${(peakRssBytes / 1e6).toFixed(0)} MB`,
  );
  return figures;
}

async function took(ask: () => Promise<Response>): Promise<number> {
  const startedMs = performance.now();
  const response = await ask();
  const text = await response.text();
  const tookMs = performance.now() - startedMs;
  expect([response.status, text]).toEqual([200, text]);
  return tookMs;
}

function highest(all: number[]): number {
  return all.toSorted((a, b) => a - b)[Math.floor(all.length * 0.99)] ?? 0;
}

function expectBounded({ healthMs, chatMs, peakRssBytes, busyMs }: Beside): void {
  expect(peakRssBytes).toBeLessThan(maxRssBytes);
  expect(busyMs).toBeLessThan(withinMs(maxMs));
  // Other programs on the machine lengthen these.
  if (long) expect(Math.max(healthMs, chatMs)).toBeLessThan(maxMs);
}

/** Streams of a model that never ends by itself; each is asked for again once it has ended. */
function streams(model: string, count: number, more: object): { ends: string[]; stop(): Promise<void> } {
  const ends: string[] = [];
  const stopping = new AbortController();
  const one = async () => {
    while (!stopping.signal.aborted) {
      const response = await server.request("/v1/chat/completions", {
        body: chat(model, more),
        signal: stopping.signal,
      });
      ends.push(await response.text());
      await Bun.sleep(againMs);
    }
  };
  const all = Promise.allSettled(Array.from({ length: count }, one));
  return {
    ends,
    async stop() {
      stopping.abort();
      await all;
    },
  };
}

const floods = ["comments", "returns", "blank-lines", "empty-events", "one-line"] as const;
const each = floods.flatMap((model) => [1, 4].map((count) => [model, count] as const));

// hardening: F13
test.each(each)(
  "delays no other request for %s that a model server sends at full speed on %i streams",
  async (model, count) => {
    await server.beginAnew();
    const { ends, stop } = streams(model, count, { stream: true });
    const figures = await beside(`${count} of ${model}`);
    await stop();
    expectBounded(figures);
    // The stream ends with an error event, and says whose fault it is.
    expect(ends.length).toBeGreaterThan(0);
    for (const text of ends) expect(text).toContain('"code":"upstream_error"');
  },
  60_000,
);

// hardening: F13
test("delays no request for comments that a node sends at full speed through its tunnel", async () => {
  const { key } = await makeOperatorKey({
    dataDir: server.dataDir,
    secretsHex: undefined,
    databaseUrl: undefined,
    environment: undefined,
    request: { name: "Operator", scopes: ["admin:manage"] },
    nowSeconds: Math.floor(Date.now() / 1000),
  });
  const made = await server.request("/v1/admin/node-tokens", { body: { approved_models: ["*"] }, key });
  const { token } = (await made.json()) as { token: string };
  await using _node = await startFixture("flooding-node.ts", server.url, token);
  await until(async () => {
    const { data } = (await (await server.request("/v1/models")).json()) as { data: { id: string }[] };
    return data.some(({ id }) => id === "node-comments");
  }, "the node's model is on offer");
  await server.beginAnew();
  const { ends, stop } = streams("node-comments", 4, { stream: true });
  const figures = await beside("4 of a node");
  await stop();
  expectBounded(figures);
  for (const text of ends) expect(text).toContain('"code":"upstream_error"');
}, 60_000);

// hardening: F13
test("aborts endless whole answers before they fill the memory, without delaying others", async () => {
  await server.beginAnew();
  const { ends, stop } = streams("whole", 16, {});
  const figures = await beside("16 whole answers");
  await stop();
  expectBounded(figures);
  for (const text of ends) expect(text).toMatch(/"code":"(?:upstream_error|rate_limit_exceeded|service_unavailable)"/);
}, 60_000);

const bodyBytes = 10_000_000;
const bodies = long ? 300 : 150;

/** Gives what each of the clients was answered, when it is asked for. */
async function startFloodingClients(): Promise<{
  answers(): Promise<string[]>;
  [Symbol.asyncDispose](): Promise<void>;
}> {
  const file = join(import.meta.dir, "..", "fixtures", "flooding-clients.ts");
  let connected = false;
  let answers: string[] | undefined;
  const words = [process.execPath, file, server.url, server.key, String(bodies), String(bodyBytes)];
  const child = Bun.spawn(words, {
    stdin: "ignore",
    stdout: "inherit",
    stderr: "inherit",
    ipc: (reported: "connected" | { answers: string[] }) => {
      if (reported === "connected") connected = true;
      else answers = reported.answers;
    },
  });
  await until(() => connected, "all clients are connected");
  return {
    async answers() {
      answers = undefined;
      child.send("answers");
      return until(() => answers, "the clients tell");
    },
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
    },
  };
}

// hardening: F13
test(`bounds one key's ${bodies} bodies of 10 MB to a third of the memory, and refuses the rest with 429 and Retry-After`, async () => {
  await server.beginAnew();
  await using clients = await startFloodingClients();
  const figures = await beside(`${bodies} bodies`);
  expectBounded(figures);
  const maxOpen = Math.floor(42e6 / bodyBytes);
  const refused = await until(async () => {
    const answers = (await clients.answers()).filter((answer) => answer !== "");
    return answers.length >= bodies - maxOpen ? answers : undefined;
  }, "the others are refused");
  for (const answer of refused) {
    expect(answer).toMatch(/^HTTP\/1\.1 429 /);
    expect(answer).toContain("\r\nretry-after: 1\r\n");
    expect(answer).toContain('"code":"rate_limit_exceeded"');
  }
}, 60_000);
