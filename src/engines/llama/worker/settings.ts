// The settings that the gateway passes to a worker on its command line.
import { z } from "zod";

export const workerSettings = z.object({
  /** Path of the Unix domain socket to listen on. */
  socket: z.string().min(1),
  modelPath: z.string().min(1),
  /** The id under which requests name the model. */
  modelId: z.string().min(1),
  /** The number of tokens per sequence. */
  context: z.int().min(16).optional(),
  /** Sequences, i.e. parallel generations. */
  parallel: z.int().min(1).max(256).optional(),
  /** The largest context and number of sequences to choose by default: the reserved memory is computed for them. */
  most: z.object({ context: z.int().min(1), parallel: z.int().min(1) }).optional(),
  threads: z.int().min(1).optional(),
  gpu: z.union([z.literal(false), z.literal("auto")]).default(false),
  /** Directory of another node-llama-cpp install, with a GPU back-end. */
  libraryPath: z.string().optional(),
});

export type WorkerSettings = z.infer<typeof workerSettings>;
