// Measures how many threads run a model fastest on this machine.
import { availableParallelism } from "node:os";
import type { LlamaModel } from "node-llama-cpp";

/** The maximum number of threads for a model. One core is left for the gateway. */
export const mostThreads = Math.max(1, availableParallelism() - 1);

/** The time limit of the whole search. A trial of one thread count takes `trialMs`. */
const searchMs = 2000;
const trialMs = 150;
const maxTokensOfTrial = 24;

/** Up to this file size, one thread generates a token in well under a second. */
const quickModelBytes = 500_000_000;

/**
 * Chooses the number of threads by measuring. Starts with one thread for a small model and with the most for a
 * large one, and then doubles or halves the number until the model gets slower. More threads can be many times
 * slower.
 */
export async function chooseThreads(model: LlamaModel, most: number): Promise<number> {
  const candidates: number[] = [];
  for (let threads = most; threads >= 1; threads >>= 1) candidates.push(threads);
  if (model.size <= quickModelBytes) candidates.reverse();
  let best = candidates[0] ?? 1;
  if (candidates.length === 1) return best;
  let bestMs = Number.POSITIVE_INFINITY;
  const started = performance.now();
  for (const threads of candidates) {
    if (performance.now() - started > searchMs) break;
    const tokenMs = await measure(model, threads);
    if (tokenMs > bestMs) break;
    best = threads;
    bestMs = tokenMs;
  }
  return best;
}

/** Returns the milliseconds per generated token. */
async function measure(model: LlamaModel, threads: number): Promise<number> {
  const context = await model.createContext({ contextSize: 64, batchSize: 16, threads });
  try {
    const sequence = context.getSequence();
    const start = model.tokens.bos ?? model.tokens.eos ?? model.tokenize("a")[0];
    if (start === undefined) return Number.POSITIVE_INFINITY;
    let count = 0;
    let started = 0;
    for await (const _ of sequence.evaluate([start], { yieldEogToken: true })) {
      // The first token is not timed, because it includes the creation of the threads.
      if (count === 0) started = performance.now();
      else if (performance.now() - started > trialMs || count >= maxTokensOfTrial) break;
      count += 1;
    }
    return (performance.now() - started) / Math.max(1, count);
  } finally {
    await context.dispose();
  }
}
