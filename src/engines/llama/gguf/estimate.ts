// How much memory a model will take, worked out from what its file says, before anything of it is loaded.
import type { MemoryNeed } from "../../../domain/models/memory-need.ts";
import type { GgufFacts } from "./model-file.ts";

export interface AskedShape {
  /** Tokens of one place, and places; undefined: as the engine chooses. */
  context: number | undefined;
  parallel: number | undefined;
}

/** What the engine takes where nothing else is asked for, and where memory allows. */
const largestDefaultContext = 8192;
const defaultParallel = 4;
/** Small models answer so fast that more at once cost little. */
const smallModelBytes = 100_000_000;
const defaultParallelOfSmallModel = 8;
/** Below this a context is not reduced any more. */
export const smallestContext = 512;

/** Keys and values are kept as 16-bit floats. */
const cachedBytes = 2;
/** Tokens that are computed at once (`n_ubatch` of llama.cpp); their logits and vectors are 32-bit floats. */
const batchTokens = 512;
const computedBytes = 4;
/** Vectors of a token that are held while a layer is computed. */
const heldVectors = 16;
/** The process with the library, before it has a model: 98 MB measured. */
const processBytes = 100_000_000;

/** The context and the places that are taken where nothing is asked for. `trained`: tokens that it was trained for. */
export function defaultShape(fileBytes: number, trained: number): { context: number; parallel: number } {
  return {
    context: Math.min(trained, largestDefaultContext),
    parallel: fileBytes < smallModelBytes ? defaultParallelOfSmallModel : defaultParallel,
  };
}

/**
 * With sliding windows a model takes less, as only some layers keep all of the context: the estimate is then too high.
 */
export function estimateMemory(facts: GgufFacts, asked: AskedShape): MemoryNeed {
  const usual = defaultShape(facts.fileBytes, facts.context ?? largestDefaultContext);
  const context = asked.context ?? usual.context;
  const parallel = asked.parallel ?? usual.parallel;
  const least = partsOf(facts, asked.context ?? Math.min(context, smallestContext), asked.parallel ?? 1);
  const parts = partsOf(facts, context, parallel);
  return { ...parts, minBytes: least.bytes, context, parallel };
}

/**
 * The same, with fewer places, and then with a shorter context, so that `roomBytes` are enough where that can be; what was
 * asked for stays.
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

/** What any model of this size takes at the least, while nothing but the size is known of it. */
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
