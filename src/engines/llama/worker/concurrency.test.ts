import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  type Health,
  temporaryDirectory,
  until,
  WorkerProcess,
} from "../../../../tests/support/llama/worker-process.ts";

const directory = temporaryDirectory();
let worker: WorkerProcess;

beforeAll(async () => {
  worker = await WorkerProcess.start(directory.path);
});

afterAll(async () => {
  await worker.stop();
  directory.dispose();
});

/**
 * Options for a reply that ends only when the context is full: a full stop is always preferred, and no token is banned.
 */
const endless = { logit_bias: { 46: 100 }, temperature: 0 };

function stream(options: Record<string, unknown>, signal?: AbortSignal): Promise<Response> {
  const body = { messages: [{ role: "user", content: "Hi" }], stream: true, ...endless, ...options };
  return worker.post("/chat/completions", body, signal === undefined ? {} : { signal });
}

async function sequences(): Promise<Health["sequences"]> {
  return (await worker.get<Health>("/health")).sequences;
}

async function idle(): Promise<boolean> {
  const { busy, waiting } = await sequences();
  return busy === 0 && waiting === 0;
}

test("advances eight concurrent streams side by side", async () => {
  const order: number[] = [];
  await Promise.all(
    Array.from({ length: 8 }, async (_, index) => {
      const response = await stream({ max_tokens: 100 });
      for await (const _ of response.body ?? []) order.push(index);
    }),
  );
  const firstEnd = Math.min(...Array.from({ length: 8 }, (_, index) => order.lastIndexOf(index)));
  // Before the first stream ends, each of the others has delivered something.
  expect(new Set(order.slice(0, firstEnd)).size).toBe(8);
});

test("queues more requests than sequences, and finishes all", async () => {
  const answers = await Promise.all(Array.from({ length: 30 }, () => worker.chat("Hi", { max_tokens: 5 })));
  expect(answers.map(({ usage }) => usage.completion_tokens)).toEqual(Array(30).fill(5));
  expect(await idle()).toBe(true);
});

test("frees the sequence of a stream whose client leaves", async () => {
  const response = await stream({});
  const reader = response.body?.getReader();
  await reader?.read();
  expect((await sequences()).busy).toBe(1);
  await reader?.cancel();
  await until(idle, 1000);
});

test("frees the sequence of a request whose client leaves before its answer", async () => {
  const abort = new AbortController();
  const body = { messages: [{ role: "user", content: "Hi" }], ...endless };
  const answer = worker.post("/chat/completions", body, { signal: abort.signal }).catch(() => undefined);
  await until(async () => (await sequences()).busy === 1);
  abort.abort();
  await until(idle, 1000);
  expect(await answer).toBeUndefined();
});

test("removes clients that leave from the queue for sequences, and serves the others", async () => {
  const holders = await Promise.all(Array.from({ length: 8 }, () => stream({})));
  const abort = new AbortController();
  const leavers = Array.from({ length: 3 }, () =>
    stream({}, abort.signal)
      .then((response) => response.text())
      .catch(() => "left"),
  );
  const stayer = worker.chat("Hi", { max_tokens: 2 });
  await until(async () => (await sequences()).waiting === 4);
  abort.abort();
  await until(async () => (await sequences()).waiting === 1);
  await Promise.all(holders.map((response) => response.body?.cancel()));
  expect((await stayer).usage.completion_tokens).toBe(2);
  expect(await Promise.all(leavers)).toEqual(["left", "left", "left"]);
  await until(idle, 1000);
});

test("ends all choices of a request whose client leaves", async () => {
  const response = await stream({ n: 12 });
  await until(async () => (await sequences()).busy === 8);
  await response.body?.cancel();
  await until(idle, 1000);
});

test("pauses the generation of a client that does not read, and frees it when the client leaves", async () => {
  const abort = new AbortController();
  const response = await stream({ n: 8 }, abort.signal);
  let before = -1;
  await until(async () => {
    const { sequences, generated_tokens: generated } = await worker.get<Health>("/health");
    const waits = sequences.busy === 8 && generated === before;
    before = generated;
    if (!waits) await Bun.sleep(100);
    return waits;
  });
  expect(response.status).toBe(200);
  abort.abort();
  await until(idle, 1000);
});

test("answers as before after aborted requests", async () => {
  const before = await worker.chat("What is the default port?");
  const response = await stream({ messages: [{ role: "user", content: "What is the default port?" }] });
  await response.body?.cancel();
  await until(idle, 1000);
  const after = await worker.chat("What is the default port?");
  expect(after.choices[0]?.message.content).toBe(before.choices[0]?.message.content ?? "");
});
