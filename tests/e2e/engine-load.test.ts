// The built-in engine under load, seen from its clients: fairness, a full house, and the death of its process.
import { expect, test } from "bun:test";
import type OpenAI from "openai";
import { APIError } from "openai";
import { openaiClient } from "../support/clients.ts";
import { startHeadrace, type TestServer, until } from "../support/headrace.ts";
import { answer, chat, endless } from "../support/tiny-demo.ts";

/** The engine's only model. */
function engineState(server: TestServer) {
  const state = server.engine.status()[0];
  if (!state) throw new Error("the built-in engine runs no model");
  const waiting = server.capacity.figures(server.engine).reduce((sum, gate) => sum + gate.waiting, 0);
  return { ...state, waiting };
}

interface StreamEnd {
  chunks: number;
  finishReason: string | null;
  error: unknown;
}

/** Reads a stream to its end, however that comes. */
async function readStream(client: OpenAI, onChunk: () => void = () => {}, asked = endless): Promise<StreamEnd> {
  const end: StreamEnd = { chunks: 0, finishReason: null, error: undefined };
  try {
    for await (const { choices } of await client.chat.completions.create({ ...asked, stream: true })) {
      if (choices[0]?.delta.content) {
        end.chunks++;
        onChunk();
      }
      end.finishReason = choices[0]?.finish_reason ?? end.finishReason;
    }
  } catch (error) {
    end.error = error;
  }
  return end;
}

/** The answer's text, or what was raised: a promise that is awaited late must not count as unhandled. */
function contentOf(completion: Promise<OpenAI.ChatCompletion>): Promise<unknown> {
  return completion.then(
    ({ choices }) => choices[0]?.message.content,
    (error: unknown) => error,
  );
}

test("streams to four clients at the same time without blocking any", async () => {
  await using server = await startHeadrace({ demo: true, flags: { parallel: "4" } });
  const client = openaiClient(server);
  await client.chat.completions.create(chat);
  const order: number[] = [];
  const asked = { ...endless, max_tokens: 250 };
  const ends = await Promise.all(
    Array.from({ length: 4 }, (_, index) => readStream(client, () => void order.push(index), asked)),
  );
  expect(ends).toEqual(ends.map(() => ({ chunks: asked.max_tokens, finishReason: "length", error: undefined })));
  const firstEnd = Math.min(...ends.map((_, index) => order.lastIndexOf(index)));
  const progressAtFirstEnd = ends.map((_, index) => order.slice(0, firstEnd).filter((other) => other === index).length);
  // When the quickest is done, the slowest has at least half of its answer.
  expect(Math.min(...progressAtFirstEnd)).toBeGreaterThan(asked.max_tokens / 2);
  expect(engineState(server)).toMatchObject({ busy: 0, waiting: 0 });
});

test("queues requests beyond the slots and answers all of them whole", async () => {
  await using server = await startHeadrace({ demo: true, flags: { parallel: "2" } });
  const client = openaiClient(server);
  await client.chat.completions.create(chat);
  const long = [readStream(client), readStream(client)];
  await until(() => engineState(server).busy === 2, "both places are taken");
  const short = Array.from({ length: 10 }, () => contentOf(client.chat.completions.create(chat)));
  await until(() => engineState(server).waiting === 10, "ten wait");
  for (const end of await Promise.all(long)) expect(end).toMatchObject({ finishReason: "length", error: undefined });
  for (const content of await Promise.all(short)) expect(content).toBe(answer);
  expect(engineState(server)).toMatchObject({ busy: 0, waiting: 0 });
});

test("moves the queue up if a waiting client leaves", async () => {
  await using server = await startHeadrace({ demo: true, flags: { parallel: "1" } });
  const client = openaiClient(server);
  await client.chat.completions.create(chat);
  const first = readStream(client);
  await until(() => engineState(server).busy === 1, "the first is at work");
  const leave = new AbortController();
  const leaving = client.chat.completions.create(endless, { signal: leave.signal }).catch((error: unknown) => error);
  await until(() => engineState(server).waiting === 1, "the second waits");
  const last = client.chat.completions.create(chat);
  await until(() => engineState(server).waiting === 2, "the third waits");
  leave.abort();
  expect(await leaving).toBeInstanceOf(APIError);
  await until(() => engineState(server).waiting === 1, "the second has left the queue");
  expect((await last).choices[0]?.message.content).toBe(answer);
  expect(await first).toMatchObject({ finishReason: "length", error: undefined });
});

test("fails only the generations in progress if the engine's process is killed, and answers later and waiting requests", async () => {
  await using server = await startHeadrace({ demo: true, flags: { parallel: "2" } });
  const client = openaiClient(server);
  await client.chat.completions.create(chat);
  const { pid } = engineState(server);
  const begun = new Set<number>();
  const inFlight = [0, 1].map((index) => readStream(client, () => void begun.add(index)));
  await until(() => begun.size === 2, "both are at work");
  const waiting = [0, 1].map(() => contentOf(client.chat.completions.create(chat)));
  const waitingStream = readStream(client);
  await until(() => engineState(server).waiting === 3, "three wait");
  process.kill(pid ?? 0, "SIGKILL");

  for (const end of await Promise.all(inFlight)) {
    expect(end.error).toBeInstanceOf(APIError);
    expect(end.error).toMatchObject({ code: "upstream_error", type: "api_error" });
    expect(String(end.error)).toContain("engine stopped while it worked on this request");
    expect(end.chunks).toBeGreaterThan(0);
    expect(end.chunks).toBeLessThan(endless.max_tokens);
  }
  // The server never went away, and a request that comes while the engine is down waits for it.
  expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
  const during = contentOf(client.chat.completions.create(chat));
  expect(await Promise.all([...waiting, during])).toEqual([answer, answer, answer]);
  expect(await waitingStream).toEqual({ chunks: endless.max_tokens, finishReason: "length", error: undefined });
  expect(engineState(server)).toMatchObject({ state: "ready", busy: 0, waiting: 0 });
  expect(engineState(server).pid).not.toBe(pid);
  expect(server.logged("engine_crashed")).toHaveLength(1);
  const outcomes = server.logged("request").map((line) => line["outcome"]);
  expect(outcomes.filter((outcome) => outcome === "failed")).toHaveLength(2);
});

test("raises an InternalServerError that the SDK retries if the engine dies during a plain request", async () => {
  await using server = await startHeadrace({ demo: true });
  await openaiClient(server).chat.completions.create(chat);
  const killWhenBusy = async () => {
    await until(() => engineState(server).busy === 1, "it is at work");
    process.kill(engineState(server).pid ?? 0, "SIGKILL");
  };
  const failing = openaiClient(server)
    .chat.completions.create(endless)
    .catch((error: unknown) => error);
  await killWhenBusy();
  expect(await failing).toMatchObject({ status: 502, code: "upstream_error" });
  await until(() => engineState(server).state === "ready", "the engine is back");

  const retrying = openaiClient(server, { maxRetries: 2 }).chat.completions.create(endless);
  await killWhenBusy();
  expect((await retrying).choices[0]?.finish_reason).toBe("length");
});

test("answers requests right after each of three engine deaths, with at most the SDK's retries", async () => {
  await using server = await startHeadrace({ demo: true });
  const client = openaiClient(server, { maxRetries: 2 });
  await client.chat.completions.create(chat);
  for (let death = 1; death <= 3; death++) {
    process.kill(engineState(server).pid ?? 0, "SIGKILL");
    expect(await contentOf(client.chat.completions.create(chat))).toBe(answer);
    expect(server.logged("engine_crashed")).toHaveLength(death);
  }
});
