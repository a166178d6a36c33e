import { afterAll, beforeAll, expect, test } from "bun:test";
import { getLlama, type LlamaContext, type LlamaContextSequence, LlamaLogLevel, type LlamaModel } from "node-llama-cpp";
import { demoModel } from "../../../../tests/support/llama/worker-process.ts";
import { Batching } from "./batching.ts";

let model: LlamaModel;

beforeAll(async () => {
  const llama = await getLlama({ gpu: false, build: "never", skipDownload: true, logLevel: LlamaLogLevel.error });
  model = await llama.loadModel({ modelPath: demoModel });
});

afterAll(async () => {
  await model.dispose();
});

/** Opens a context with four sequences. `batches` gets the number of sequences in each evaluated batch. */
async function open(): Promise<{ batching: Batching; context: LlamaContext; batches: number[] }> {
  const batching = new Batching();
  const batches: number[] = [];
  const { itemPrioritizationStrategy: arrange, ...others } = batching.options;
  if (typeof arrange !== "function") throw new Error("the strategy is a function");
  const counted: typeof arrange = (request) => {
    const items = arrange(request);
    if (items.length > 0) batches.push(items.length);
    return items;
  };
  const context = await model.createContext({
    contextSize: 128,
    sequences: 4,
    threads: 1,
    batching: { ...others, itemPrioritizationStrategy: counted },
  });
  return { batching, context, batches };
}

async function write(batching: Batching, sequence: LlamaContextSequence, tokens: number): Promise<void> {
  const steps = sequence.evaluateWithMetadata(model.tokenize("Once"), {}, { yieldEogToken: true });
  batching.enter();
  for (let count = 0; count < tokens; count++) {
    await steps.next();
    if (batching.pause === undefined) continue;
    batching.leave();
    await batching.pause;
    batching.enter();
  }
  batching.leave();
  await steps.return();
}

test("evaluates concurrent generations in common batches", async () => {
  const { batching, context, batches } = await open();
  const sequences = Array.from({ length: 4 }, () => context.getSequence());
  await Promise.all(sequences.map((sequence) => write(batching, sequence, 40)));
  expect(batches).toEqual(Array(40).fill(4));
  await context.dispose();
});

test("keeps batching the remaining generations after one ends", async () => {
  const { batching, context, batches } = await open();
  await Promise.all([5, 10, 20].map((tokens) => write(batching, context.getSequence(), tokens)));
  expect(batches).toEqual([...Array(5).fill(3), ...Array(5).fill(2), ...Array(10).fill(1)]);
  await context.dispose();
});

test("does not wait forever for an announced generation that never starts", async () => {
  const { batching, context, batches } = await open();
  batching.enter();
  await write(batching, context.getSequence(), 10);
  expect(batches).toHaveLength(10);
  await context.dispose();
});

test("runs work on the context between two batches", async () => {
  const { batching, context, batches } = await open();
  const [first, second, third] = [context.getSequence(), context.getSequence(), context.getSequence()];
  await write(batching, third, 3);
  const generations = Promise.all([write(batching, first, 60), write(batching, second, 60)]);
  await Bun.sleep(0);
  await batching.between(() => third.clearHistory());
  const when = batches.length;
  await generations;
  expect(third.nextTokenIndex).toBe(0);
  expect(when).toBeLessThan(20);
  await context.dispose();
});

test("runs deferred work during a batch, or at once if nothing runs", async () => {
  const { batching, context, batches } = await open();
  const idle = Promise.withResolvers<void>();
  batching.afterwards(idle.resolve);
  await idle.promise;
  const sequence = context.getSequence();
  const steps = sequence.evaluateWithMetadata(model.tokenize("Once"), {}, { yieldEogToken: true });
  batching.enter();
  await steps.next();
  let done = -1;
  batching.afterwards(() => {
    done = batches.length;
  });
  await steps.next();
  // The demo model may finish its batch before the remaining callbacks run on a busy machine.
  await new Promise((resolve) => setImmediate(resolve));
  expect(done).toBe(2);
  batching.leave();
  await steps.return();
  await context.dispose();
});

test("fits a long prompt and the tokens of other generations into one batch", () => {
  const arrange = new Batching().options.itemPrioritizationStrategy;
  if (typeof arrange !== "function") throw new Error("the strategy is a function");
  const items = [900, 1, 1, 30].map((length) => ({
    tokens: model
      .tokenize("a")
      .slice(0, 1)
      .concat(Array(length - 1).fill(1)),
    logits: [],
    evaluationPriority: 5 as const,
  }));
  const shares = new Map(arrange({ items, size: 512 }).map(({ item, processAmount }) => [item, processAmount]));
  expect(items.map((item) => shares.get(item))).toEqual([480, 1, 1, 30]);
});
