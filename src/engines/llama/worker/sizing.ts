// Chooses how long and how many the sequences of a context are, so that they fit into memory.
import { freemem } from "node:os";
import type { Llama, LlamaModel } from "node-llama-cpp";

export interface ContextShape {
  /** Tokens per sequence. */
  contextSize: number;
  sequences: number;
}

const largestDefaultContext = 8192;
const smallestContext = 512;
const defaultSequences = 4;
/** Small models answer so fast that more at once cost little. */
const smallModelBytes = 100_000_000;
const defaultSequencesOfSmallModel = 8;
/** The rest is for the model's weights, the gateway, and whatever else runs. */
const shareOfFreeMemory = 0.5;

/** Bytes that this process can still take, a container's limit included. */
export function availableMemoryBytes(): number {
  return Math.min(freemem(), process.availableMemory());
}

/**
 * Sizes that were asked for are taken as they are; others are reduced, sequences first, until the library's estimate
 * fits.
 */
export async function chooseShape(
  llama: Llama,
  model: LlamaModel,
  asked: { contextSize: number | undefined; sequences: number | undefined },
): Promise<ContextShape> {
  const small = model.size < smallModelBytes;
  const shape = {
    contextSize: asked.contextSize ?? Math.min(model.trainContextSize, largestDefaultContext),
    sequences: asked.sequences ?? (small ? defaultSequencesOfSmallModel : defaultSequences),
  };
  const ramBytes = availableMemoryBytes() * shareOfFreeMemory;
  const vramBytes = llama.gpu === false ? 0 : (await llama.getVramState()).free * shareOfFreeMemory;
  while (!(await fits(model, shape, ramBytes, vramBytes))) {
    if (asked.sequences === undefined && shape.sequences > 1) shape.sequences >>= 1;
    else if (asked.contextSize === undefined && shape.contextSize > smallestContext) {
      shape.contextSize = Math.max(smallestContext, shape.contextSize >> 1);
    } else break;
  }
  return shape;
}

async function fits(model: LlamaModel, shape: ContextShape, ramBytes: number, vramBytes: number): Promise<boolean> {
  const needed = await model.fileInsights.estimateContextResourceRequirementsV2({
    ...shape,
    modelGpuLayers: model.gpuLayers,
  });
  return needed.cpuRam <= ramBytes && needed.gpuVram <= vramBytes;
}
