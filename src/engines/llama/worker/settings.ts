// The settings that the gateway passes to a worker on its command line.
import { z } from "zod";

export const workerSettings = z.object({
  /** Path of the Unix domain socket to listen on. */
  socket: z.string().min(1),
  modelPath: z.string().min(1),
  /** The model id that requests use. */
  modelId: z.string().min(1),
  /** The number of tokens per sequence. */
  context: z.int().min(16).optional(),
  /** The number of sequences, which is the maximum number of parallel generations. */
  parallel: z.int().min(1).max(256).optional(),
  /** The largest default context and number of sequences, for which the gateway has reserved memory. */
  most: z.object({ context: z.int().min(1), parallel: z.int().min(1) }).optional(),
  threads: z.int().min(1).optional(),
  gpu: z.union([z.literal(false), z.literal("auto")]).default(false),
  /** Directory of another node-llama-cpp install that has a GPU back-end. */
  libraryPath: z.string().optional(),
});

export type WorkerSettings = z.infer<typeof workerSettings>;
