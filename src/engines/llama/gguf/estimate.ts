// Estimates from a GGUF file how much memory its model will need.
import type { MemoryNeed } from "../../../domain/models/memory-need.ts";
import type { GgufFacts } from "./model-file.ts";

export interface AskedShape {
  /** The context of one slot in tokens, and the number of slots. Undefined for the default. */
  context: number | undefined;
  parallel: number | undefined;
}

/** The context and the number of slots that the engine uses by default, if memory allows. */
const largestDefaultContext = 8192;
const defaultParallel = 4;
/** Models smaller than this get more slots by default, because parallel requests cost them little. */
const smallModelBytes = 100_000_000;
const defaultParallelOfSmallModel = 8;
/** The shortest context, in tokens, that a model without a configured context is reduced to. */
export const smallestContext = 512;

/** The bytes of a key or value in the cache: both are 16-bit floats. */
const cachedBytes = 2;
/** The tokens computed at once (`n_ubatch` of llama.cpp). Each value is a 32-bit float. */
const batchTokens = 512;
const computedBytes = 4;
/** The number of vectors per token that are in memory while a layer is computed. */
const heldVectors = 16;
/** The memory of the process with the library, before it has a model: 98 MB measured. */
const processBytes = 100_000_000;

/** Returns the default context and number of slots. `trained` is the context length of the training, in tokens. */
export function defaultShape(fileBytes: number, trained: number): { context: number; parallel: number } {
  return {
    context: Math.min(trained, largestDefaultContext),
    parallel: fileBytes < smallModelBytes ? defaultParallelOfSmallModel : defaultParallel,
  };
}

/**
 * Estimates the memory of a model. Too high for sliding-window models, in which only some layers keep the whole
 * context.
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
 * Estimates the memory of a model that must fit into `roomBytes`, by reducing first the slots and then the
 * context. Values in `asked` are not reduced.
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

/** Returns the least memory that a model file of this size needs. */
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
