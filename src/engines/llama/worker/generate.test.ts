// Tests the generation loop with the demo model: what it reads while the model works, and that this changes no answer.
import { afterEach, beforeAll, expect, test } from "bun:test";
import { type LlamaGrammarEvaluationState, TokenBias } from "node-llama-cpp";
import { demoModel } from "../../../../tests/support/llama/worker-process.ts";
import { Batching } from "./batching.ts";
import { type Generation, generate, type Outcome } from "./generate.ts";
import { load } from "./load.ts";
import { plainSyntax } from "./reply/reply-format.ts";
import { ReplyReader } from "./reply/reply-reader.ts";
import { EventStream } from "./request/event-stream.ts";
import { Frames } from "./request/frames.ts";
import { type Runtime, writesText } from "./runtime.ts";
import { SequencePool } from "./sequence-pool.ts";

let runtime: Runtime;
/** The number of evaluations that have begun. */
let batches = 0;
/** A function that runs at the end of each evaluation, which ends when the function does. Undefined for none. */
let beforeEnd: (() => Promise<void>) | undefined;
/** The number of the evaluation that fails before it does anything. */
let failing = 0;
/** If true, no batch is put together. */
let refusing = false;

/**
 * The part of the library that evaluates batches. It is private, but there is no other way to make an evaluation fail.
 */
interface Evaluator {
  decodeBatch(): Promise<void>;
}

function isEvaluator(one: unknown): one is Evaluator {
  return typeof one === "object" && one !== null && "decodeBatch" in one;
}

beforeAll(async () => {
  const settings = { socket: "", modelPath: demoModel, modelId: "demo", parallel: 1, gpu: false as const };
  const giveUp = (error: unknown) => {
    throw error;
  };
  const loaded = await load(settings, { log: () => {}, giveUp });
  if (!writesText(loaded)) throw new Error("the demo model writes text");
  const batching = new Batching();
  const { itemPrioritizationStrategy: arrange, ...others } = batching.options;
  if (typeof arrange !== "function") throw new Error("the strategy is a function");
  const counted: typeof arrange = (request) => {
    if (refusing) throw new Error("no batch");
    const items = arrange(request);
    if (items.length > 0) batches += 1;
    return items;
  };
  const context = await loaded.model.createContext({
    contextSize: 256,
    sequences: 4,
    threads: 1,
    batching: { ...others, itemPrioritizationStrategy: counted },
  });
  const native: unknown = Reflect.get(context, "_ctx");
  if (!isEvaluator(native)) throw new Error("the library evaluates in another way");
  const failingAtWill = new Proxy(native, {
    get: (target, name) => {
      const value = Reflect.get(target, name);
      if (name === "decodeBatch") {
        return async () => {
          if (batches === failing) throw new Error("no memory");
          await native.decodeBatch();
          await beforeEnd?.();
        };
      }
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  Reflect.set(context, "_ctx", failingAtWill);
  const pool = new SequencePool(context, batching, giveUp);
  runtime = { ...loaded, context, batching, pool, frames: new Frames(batching) };
});

afterEach(() => {
  beforeEnd = undefined;
  failing = 0;
  refusing = false;
});

interface Options {
  seed?: number;
  stops?: readonly string[];
  endings?: readonly string[];
  grammar?: string;
  maxTokens?: number;
  signal?: AbortSignal;
  tell?: (text: string) => Promise<void> | undefined;
}

/** Returns a generation of letters: its text differs with every seed, and each token yields text. */
function generationOf({ seed = 1, stops = [], endings = [], grammar, maxTokens = 40 }: Options): Generation {
  const { model, library, llama } = runtime;
  const bias = TokenBias.for(model);
  for (const token of model.tokenize("abcdefgh")) bias.set(token, { logit: 30 });
  return {
    prompt: model.tokenize("Once upon a time"),
    maxTokens,
    choice: 0,
    sampling: {
      temperature: 1,
      topP: 1,
      topK: 1000,
      minP: 0,
      frequencyPenalty: 0,
      presencePenalty: 0,
      seed,
      bias,
      banned: new Set(),
    },
    startReader: () =>
      new ReplyReader<LlamaGrammarEvaluationState>({
        syntax: { ...plainSyntax, endings },
        stops,
        startsInReasoning: false,
        continuesText: false,
        answerGrammar: grammar,
        tools: [],
        startsInCall: false,
        parallelCalls: false,
        startGrammar: (text) =>
          new library.LlamaGrammarEvaluationState({
            model,
            grammar: new library.LlamaGrammar(llama, { grammar: text }),
          }),
      }),
  };
}

async function reply(options: Options = {}): Promise<Outcome & { text: string }> {
  const signal = options.signal ?? new AbortController().signal;
  let text = "";
  const outcome = await generate(runtime, generationOf(options), signal, (events) => {
    const reported = events.map((event) => ("text" in event ? event.text : "")).join("");
    text += reported;
    return options.tell?.(reported);
  });
  return { text, ...outcome };
}

/** Returns how many evaluations had begun when each text was reported, beyond those that the text itself needed. */
async function evaluationsAhead(options: Options): Promise<number[]> {
  const ahead: number[] = [];
  batches = 0;
  await reply({
    ...options,
    maxTokens: 12,
    tell: (text) => {
      if (text !== "") ahead.push(batches - ahead.length - 1);
      return undefined;
    },
  });
  return ahead;
}

test("reads a token's text while the model evaluates the next one, except for the first", async () => {
  const ahead = await evaluationsAhead({});
  expect(ahead).toHaveLength(12);
  expect(ahead).toEqual([0, ...Array(10).fill(1), 0]);
});

test("delivers a text before the model finishes the next token", async () => {
  const stream = new EventStream(runtime.frames, () => {});
  let arrived = 0;
  const taken = (async () => {
    for await (const bytes of stream.body) arrived += bytes.length;
  })();
  batches = 0;
  const late: number[] = [];
  beforeEnd = async () => {
    const owed = Math.min(batches - 1, 12);
    const latestMs = performance.now() + 2_000;
    while (arrived < owed && performance.now() < latestMs) await Bun.sleep(1);
    if (arrived < owed) late.push(batches);
  };
  await reply({ maxTokens: 12, tell: (text) => (text === "" ? undefined : stream.push(() => ".")) });
  stream.end();
  await taken;
  expect(late).toEqual([]);
  expect(arrived).toBe(12);
});

test("reads the text first if it decides about the next token", async () => {
  expect(await evaluationsAhead({ stops: ["never"] })).toEqual(Array(12).fill(0));
  expect(await evaluationsAhead({ grammar: "root ::= [a-h]*" })).toEqual(Array(12).fill(0));
});

test("gives the same answer whether text is read during or before the next evaluation", async () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const read = await reply({ seed });
    expect(read).toEqual(await reply({ seed, stops: ["never"] }));
    expect(read).toMatchObject({ finishReason: "length", completionTokens: 40 });
  }
});

test("ends a reply at the token that completes the model's own end text, like a stop text", async () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const { text } = await reply({ seed });
    const ending = text.slice(20, 23);
    const stopped = await reply({ seed, stops: [ending] });
    expect(stopped.finishReason).toBe("stop");
    expect(stopped.completionTokens).toBeLessThan(40);
    expect(await reply({ seed, endings: [ending] })).toEqual(stopped);
    // Tokens that were evaluated needlessly do not disturb the next reply on that sequence.
    expect(await reply({ seed })).toMatchObject({ text });
  }
});

test("pauses the model after one more token for a client that does not read, and loses nothing", async () => {
  const { text: whole } = await reply({ seed: 7 });
  const room = Promise.withResolvers<void>();
  let received = "";
  let before = 0;
  const answered = reply({
    seed: 7,
    tell: (text) => {
      received += text;
      if (received.length < 10 || before > 0) return undefined;
      before = runtime.generatedTokens;
      return room.promise;
    },
  });
  while (before === 0) await Bun.sleep(1);
  await Bun.sleep(50);
  expect(runtime.generatedTokens - before).toBeLessThanOrEqual(1);
  room.resolve();
  expect((await answered).text).toBe(whole);
  expect(received).toBe(whole);
});

test("reads texts during evaluation again after a client was waited for", async () => {
  let notified = 0;
  const ahead: number[] = [];
  batches = 0;
  await reply({
    maxTokens: 12,
    tell: (text) => {
      if (text !== "") ahead.push(batches - ahead.length - 1);
      notified += 1;
      return notified === 4 ? Promise.resolve() : undefined;
    },
  });
  expect(ahead).toEqual([0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 0]);
});

test("gives work on the context exclusive use of the context", async () => {
  const answered = reply({ maxTokens: 200 });
  await Bun.sleep(5);
  let meanwhile = Number.POSITIVE_INFINITY;
  await runtime.batching.between(async () => {
    const before = batches;
    await Bun.sleep(50);
    meanwhile = batches - before;
  });
  expect(meanwhile).toBeLessThanOrEqual(1);
  expect(await answered).toMatchObject({ completionTokens: 200 });
});

test("reports `stop` if the last allowed token completes a stop text", async () => {
  const { text } = await reply();
  const stops = [text.slice(20, 23)];
  const { completionTokens } = await reply({ stops });
  expect(await reply({ stops, maxTokens: completionTokens })).toMatchObject({ finishReason: "stop", completionTokens });
});

test("delivers all text before a failure of the model, and serves the next request", async () => {
  const whole = await reply();
  const textUntilFailure = async (options: Options, when: "at once" | "later") => {
    batches = 0;
    if (when === "at once") failing = 6;
    beforeEnd = async () => {
      await Bun.sleep(2);
      if (batches === 6) throw new Error("no memory");
    };
    let received = "";
    const failed = reply({
      ...options,
      tell: (text) => {
        received += text;
        return undefined;
      },
    });
    expect(await failed.catch(String)).toContain("no memory");
    beforeEnd = undefined;
    failing = 0;
    expect(await reply()).toEqual(whole);
    return received;
  };
  const readBefore = await textUntilFailure({ stops: ["never"] }, "at once");
  expect(readBefore).not.toBe("");
  expect(await textUntilFailure({}, "at once")).toBe(readBefore);
  expect(await textUntilFailure({}, "later")).toBe(readBefore);
});

test("ends an aborted reply after at most one more token, and frees its sequence", async () => {
  const abort = new AbortController();
  let before = 0;
  let notified = 0;
  const answered = reply({
    signal: abort.signal,
    maxTokens: 200,
    tell: () => {
      notified += 1;
      if (notified === 5) {
        before = runtime.generatedTokens;
        abort.abort();
      }
      return undefined;
    },
  });
  expect(await answered.catch((error) => error)).toBe(abort.signal.reason);
  expect(runtime.generatedTokens - before).toBeLessThanOrEqual(1);
  expect(notified).toBe(5);
  expect(runtime.pool.state).toMatchObject({ busy: 0, free: 4 });
});

test("fails only the reply whose delivery throws", async () => {
  const broken = reply({
    tell: (text) => {
      if (text !== "") notified += 1;
      if (notified === 5) throw new Error("told in vain");
      return undefined;
    },
  });
  let notified = 0;
  const other = reply({ seed: 3 });
  await expect(broken).rejects.toThrow("told in vain");
  expect(await other).toEqual(await reply({ seed: 3 }));
  expect(runtime.pool.state).toMatchObject({ busy: 0, free: 4 });
});

test("ends each running reply with an error if no batch can be formed", async () => {
  let notified = 0;
  const failing = [1, 2].map((seed) =>
    reply({
      seed,
      tell: () => {
        notified += 1;
        refusing = notified >= 20;
        return undefined;
      },
    }),
  );
  const ends = await Promise.allSettled(failing);
  refusing = false;
  expect(ends.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(runtime.pool.state).toMatchObject({ busy: 0, free: 4 });
  expect(await reply()).toMatchObject({ completionTokens: 40 });
});
