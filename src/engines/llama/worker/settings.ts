// The settings that the gateway gives a worker on its command line.
import { z } from "zod";

export const workerSettings = z.object({
  /** Path of the Unix domain socket to listen on. */
  socket: z.string().min(1),
  modelPath: z.string().min(1),
  /** The id under which requests name the model. */
  modelId: z.string().min(1),
  /** Tokens per sequence. */
  context: z.int().min(16).optional(),
  /** Sequences, i.e. generations side by side. */
  parallel: z.int().min(1).max(256).optional(),
  /** The most of both that is chosen where nothing is asked for: the memory that is set aside is worked out for them. */
  most: z.object({ context: z.int().min(1), parallel: z.int().min(1) }).optional(),
  threads: z.int().min(1).optional(),
  gpu: z.union([z.literal(false), z.literal("auto")]).default(false),
  /** Directory of another install of node-llama-cpp, with a GPU back-end. */
  libraryPath: z.string().optional(),
});

export type WorkerSettings = z.infer<typeof workerSettings>;
