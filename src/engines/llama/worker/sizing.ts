// Chooses how many sequences a context has, and how long they are, so that it fits into memory.
import type { Llama, LlamaModel } from "node-llama-cpp";
import { defaultShape, smallestContext } from "../gguf/estimate.ts";
import { availableMemoryBytes } from "../machine-memory.ts";

export interface ContextShape {
  /** The number of tokens per sequence. */
  contextSize: number;
  sequences: number;
}

/** The share of free memory for the context. The rest is for the model's weights, the gateway and other programs. */
const shareOfFreeMemory = 0.5;

/**
 * Chooses the size of a context. Configured sizes stay. Default sizes are reduced until the context fits, the
 * number of sequences first.
 */
export async function chooseShape(
  llama: Llama,
  model: LlamaModel,
  asked: {
    contextSize: number | undefined;
    sequences: number | undefined;
    most: { context: number; parallel: number } | undefined;
  },
): Promise<ContextShape> {
  const usual = defaultShape(model.size, model.trainContextSize);
  const { most = usual } = asked;
  const shape = {
    contextSize: asked.contextSize ?? Math.min(usual.context, most.context),
    sequences: asked.sequences ?? Math.min(usual.parallel, most.parallel),
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
