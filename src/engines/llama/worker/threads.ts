// Finds by trial how many threads serve a model best on this machine (engine trap 1).
import { availableParallelism } from "node:os";
import type { LlamaModel } from "node-llama-cpp";

/** The most threads of a model. One core is left for the gateway. */
export const mostThreads = Math.max(1, availableParallelism() - 1);

/** The time of the whole search and of one candidate, enough for some tokens of any usable model. */
const searchMs = 2000;
const trialMs = 150;
const maxTokensOfTrial = 24;

/** The size up to which one thread writes a token in well under a second. */
const quickModelBytes = 500_000_000;

/**
 * Chooses the number of threads. More threads can be many times slower: with two on two virtual cores a tiny model ran
 * at a twentieth of its speed. Small models begin with one thread, large ones with the most, which are the likely best.
 * From there the number changes by factors of two until the model gets slower, as the speed has one peak.
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

/** Returns the milliseconds per token. */
async function measure(model: LlamaModel, threads: number): Promise<number> {
  const context = await model.createContext({ contextSize: 64, batchSize: 16, threads });
  try {
    const sequence = context.getSequence();
    const start = model.tokens.bos ?? model.tokens.eos ?? model.tokenize("a")[0];
    if (start === undefined) return Number.POSITIVE_INFINITY;
    let count = 0;
    let started = 0;
    for await (const _ of sequence.evaluate([start], { yieldEogToken: true })) {
      // The first token also pays for creating the threads.
      if (count === 0) started = performance.now();
      else if (performance.now() - started > trialMs || count >= maxTokensOfTrial) break;
      count += 1;
    }
    return (performance.now() - started) / Math.max(1, count);
  } finally {
    await context.dispose();
  }
}
