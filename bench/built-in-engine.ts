// Tokens a second of the built-in engine, with the demo model: driven directly, through its worker, through the gateway.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { selfCommand } from "../src/installation/paths.ts";
import type { DirectSettings } from "./built-in-engine-direct.ts";
import type { EngineJob, EngineTarget, EngineWindow } from "./built-in-engine-job.ts";
import { type Child, linesOf, startScript, stop } from "./child.ts";
import { startHeadrace } from "./headrace.ts";
import type { LoadGenerator } from "./load.ts";
import { type Spread, spread } from "./statistics.ts";

export interface EngineFigure {
  /** Streamed chats at once. */
  chats: number;
  requests: number;
  tokens: number;
  tokensPerSecond: number;
  firstEventP50Ms: number | null;
  errors: Record<string, number>;
}

/**
 * Driven in node-llama-cpp directly, once with its own batching (`library`) and once with that of our worker (`direct`);
 * through the worker's socket; through the gateway.
 */
type Way = "library" | "direct" | "worker" | "gateway";

/** The same chats four ways. Spreads are over the rounds; ratios and differences within a round. */
export interface EngineComparison {
  chats: number;
  tokensPerSecond: Record<Way, Spread>;
  /** The speed relative to the model driven directly; 1 is as fast. */
  ratio: Record<Exclude<Way, "direct">, Spread>;
  /** Milliseconds from the request to the first text. */
  firstTokenMs: Record<Way, Spread>;
  /** Milliseconds more than driven directly. */
  addedFirstTokenMs: Record<Exclude<Way, "direct">, Spread>;
  errors: Record<string, number>;
}

export interface EngineComparisonOptions {
  /** Interleaved; one more warms up. */
  rounds: number;
  /** Chats in each measurement, by so many connections as there are chats at once. */
  chats: number;
  onRound?: (round: number) => void;
}

const model = "tiny-demo";
/** A story is the longest that the demo model tells. */
const prompt = "Tell me a story.";
const maxTokens = 200;
/** A full stop. */
const onlyToken = 46;
const concurrencies = [1, 4, 8] as const;
/** Tokens: what a chat costs besides them, as its request, is told by the time to its first token. */
const longChat = 600;
const shortChat = 4;
const warmingChats = 8;
const warmingTurns = 300;
/** Longer than any load of the demo model. */
const loadWindowMs = 30_000;

const modelPath = new URL(`../models/${model}/${model}.gguf`, import.meta.url).pathname;

export async function measureEngine(load: LoadGenerator, windowMs: number): Promise<EngineFigure[]> {
  await using headrace = await startHeadrace({ upstreamPort: undefined });
  const run = (chats: number, window: number, maxRequests: number) =>
    load.run({
      port: headrace.port,
      key: headrace.key,
      body: chatBody,
      connections: chats,
      windowMs: window,
      maxRequests,
      events: undefined,
    });
  // The first answer waits until the model is loaded.
  await run(1, loadWindowMs, 1);
  const figures: EngineFigure[] = [];
  for (const chats of concurrencies) {
    const { requests, tokens, seconds, firstEventP50Ms, errors } = await run(chats, windowMs, 10_000);
    figures.push({ chats, requests, tokens, tokensPerSecond: tokens / seconds, firstEventP50Ms, errors });
  }
  return figures;
}

const chatBody = JSON.stringify({
  model,
  messages: [{ role: "user", content: prompt }],
  max_tokens: maxTokens,
  stream: true,
  stream_options: { include_usage: true },
});

/** A process that answers each line with one. */
class Runner {
  readonly #child: Child;
  readonly #lines: AsyncGenerator<string, void>;

  constructor(child: Child) {
    this.#child = child;
    this.#lines = linesOf(child);
  }

  async ask(message: object): Promise<unknown> {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
    await this.#child.stdin.flush();
    return await this.line();
  }

  async line(): Promise<unknown> {
    const { value } = await this.#lines.next();
    if (typeof value !== "string") throw new Error("A process of the engine's benchmark ended too early.");
    return JSON.parse(value);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return stop(this.#child);
  }
}

/** Every job is a list of chats with seeds of their own, so that all three write the same texts. */
export async function compareEngine(options: EngineComparisonOptions): Promise<EngineComparison[]> {
  await using stack = new AsyncDisposableStack();
  const directory = mkdtempSync(join(tmpdir(), "headrace-bench-engine-"));
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const headrace = stack.use(await startHeadrace({ upstreamPort: undefined }));
  const unix = join(directory, "worker.sock");
  const settings = JSON.stringify({ socket: unix, modelPath, modelId: model });
  const worker = stack.use(
    new Runner(
      Bun.spawn([...selfCommand("run-model"), settings], { stdin: "pipe", stdout: "pipe", stderr: "inherit" }),
    ),
  );
  const { context, parallel, threads } = (await worker.line()) as Omit<DirectSettings, "modelPath">;
  const direct = stack.use(new Runner(startScript(new URL("./built-in-engine-direct.ts", import.meta.url))));
  await direct.ask({ modelPath, context, parallel, threads } satisfies DirectSettings);
  const client = stack.use(new Runner(startScript(new URL("./built-in-engine-client.ts", import.meta.url))));

  const throughWorker: EngineTarget = { address: { unix }, path: "/chat/completions", key: "" };
  const throughGateway: EngineTarget = {
    address: { hostname: "127.0.0.1", port: headrace.port },
    path: "/v1/chat/completions",
    key: headrace.key,
  };
  const ways: readonly [Way, Runner, Partial<EngineJob>][] = [
    ["library", direct, { libraryBatching: true }],
    ["direct", direct, {}],
    ["worker", client, { target: throughWorker }],
    ["gateway", client, { target: throughGateway }],
  ];
  const measure = async (job: Omit<EngineJob, "model" | "prompt" | "onlyToken">, order = ways): Promise<Round> => {
    const windows: Partial<Round> = {};
    for (const [way, runner, own] of order) {
      windows[way] = (await runner.ask({
        model,
        prompt,
        onlyToken,
        ...job,
        ...own,
      } satisfies EngineJob)) as EngineWindow;
    }
    return windows as Round;
  };

  // Code that has served only some hundred requests still runs slowly, and is compiled beside those that are measured.
  await measure({ tokens: shortChat, chats: warmingChats, turns: warmingTurns });
  const rounds = new Map<number, Round[]>(concurrencies.map((chats) => [chats, []]));
  for (let round = 0; round <= options.rounds; round++) {
    options.onRound?.(round);
    for (const [chats, done] of rounds) {
      const job = { tokens: longChat, chats, turns: Math.ceil(options.chats / chats) };
      // The ways are measured in turn from either end, so that a machine that becomes slower is unkind to all of them.
      const windows = await measure(job, round % 2 === 0 ? ways : ways.toReversed());
      if (round > 0) done.push(windows);
    }
  }
  return [...rounds].map(([chats, done]) => compare(chats, done));
}

type Round = Record<Way, EngineWindow>;

function compare(chats: number, rounds: readonly Round[]): EngineComparison {
  const speed = ({ tokens, seconds }: EngineWindow) => tokens / seconds;
  const ways = (figure: (window: EngineWindow, round: Round) => number): Record<Way, Spread> => {
    const over = (way: Way) => spread(rounds.map((round) => figure(round[way], round)));
    return { library: over("library"), direct: over("direct"), worker: over("worker"), gateway: over("gateway") };
  };
  const errors: Record<string, number> = {};
  for (const round of rounds) {
    for (const window of Object.values(round)) {
      for (const [error, count] of Object.entries(window.errors)) errors[error] = (errors[error] ?? 0) + count;
      if (window.promptTokens !== round.direct.promptTokens) errors["a prompt of another length"] = 1;
    }
  }
  return {
    chats,
    tokensPerSecond: ways(speed),
    ratio: ways((window, { direct }) => speed(window) / speed(direct)),
    firstTokenMs: ways(({ firstTokenMs }) => firstTokenMs),
    addedFirstTokenMs: ways(({ firstTokenMs }, { direct }) => firstTokenMs - direct.firstTokenMs),
    errors,
  };
}
