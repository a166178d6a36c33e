// Estimates a model's memory from its file before anything is loaded.
import type { MemoryNeed } from "../../../domain/models/memory-need.ts";
import type { GgufFacts } from "./model-file.ts";

export interface AskedShape {
  /** Tokens of one slot, and slots. Undefined lets the engine choose. */
  context: number | undefined;
  parallel: number | undefined;
}

/** The engine takes this by default, if memory allows. */
const largestDefaultContext = 8192;
const defaultParallel = 4;
/** Small models answer so fast that more parallel requests cost little. */
const smallModelBytes = 100_000_000;
const defaultParallelOfSmallModel = 8;
/** A context is not reduced below this. */
export const smallestContext = 512;

/** Keys and values are stored as 16-bit floats. */
const cachedBytes = 2;
/** Tokens computed at once (`n_ubatch` of llama.cpp). Their logits and vectors are 32-bit floats. */
const batchTokens = 512;
const computedBytes = 4;
/** Vectors of a token that are held while a layer is computed. */
const heldVectors = 16;
/** The process with the library, before it has a model: 98 MB measured. */
const processBytes = 100_000_000;

/** The default context and slots. `trained` is the context length of the training, in tokens. */
export function defaultShape(fileBytes: number, trained: number): { context: number; parallel: number } {
  return {
    context: Math.min(trained, largestDefaultContext),
    parallel: fileBytes < smallModelBytes ? defaultParallelOfSmallModel : defaultParallel,
  };
}

/** Too high for a model with sliding windows, in which only some layers keep the whole context. */
export function estimateMemory(facts: GgufFacts, asked: AskedShape): MemoryNeed {
  const usual = defaultShape(facts.fileBytes, facts.context ?? largestDefaultContext);
  const context = asked.context ?? usual.context;
  const parallel = asked.parallel ?? usual.parallel;
  const least = partsOf(facts, asked.context ?? Math.min(context, smallestContext), asked.parallel ?? 1);
  const parts = partsOf(facts, context, parallel);
  return { ...parts, minBytes: least.bytes, context, parallel };
}

/**
 * The same with fewer slots, and then a shorter context, to fit into `roomBytes` if possible. Requested values stay.
 */
export function fittedMemory(facts: GgufFacts, asked: AskedShape, roomBytes: number): MemoryNeed {
  let need = estimateMemory(facts, asked);
  while (need.bytes > roomBytes) {
    let { context, parallel } = need;
    if (asked.parallel === undefined && parallel > 1) parallel >>= 1;
    else if (asked.context === undefined && context > smallestContext)
      context = Math.max(smallestContext, context >> 1);
    else break;
    need = { ...need, ...partsOf(facts, context, parallel), context, parallel };
  }
  return need;
}

/** The least that any model of this size takes, if only the size is known. */
export function minMemory(fileBytes: number): number {
  return fileBytes + processBytes;
}

function partsOf(facts: GgufFacts, context: number, parallel: number) {
  const weights = facts.fileBytes;
  const cache = facts.cachedPerToken * cachedBytes * context * parallel;
  const batch = Math.min(batchTokens, context * parallel);
  const compute = processBytes + batch * computedBytes * (facts.vocabulary + heldVectors * facts.embedding);
  return { bytes: weights + cache + compute, weights, cache, compute };
}
