// Schemas of models that were pulled to a server, as operators see, fetch and delete them.

import { z } from "zod";
import { byCapability } from "../domain/models/capabilities.ts";
import { fits } from "../domain/models/memory-need.ts";
import { unixSeconds } from "./parts.ts";

const memoryNeed = z
  .object({
    bytes: z.int().describe("Total of `weights`, `cache` and `compute`."),
    least_bytes: z.int().describe("Total with the shortest context with which the model can be loaded."),
    weights: z.int(),
    cache: z.int().describe("KV cache of all slots."),
    compute: z.int().describe("Batch buffers and the process itself."),
    context_length: z.int().describe("Context of one slot in tokens, on which `bytes` is based."),
    parallel: z.int().describe("Number of slots on which `bytes` is based: requests computed at the same time."),
  })
  .meta({ id: "MemoryNeed", description: "Required memory in bytes, estimated from the metadata of the file." });

const abilities = z
  .object(byCapability(() => z.boolean().optional()))
  .optional()
  .describe("Omitted if unknown.");

export const pulledModelShape = z
  .object({
    object: z.literal("pulled_model"),
    id: z.string(),
    bytes: z.int().describe("Size of the model's files on disk."),
    state: z
      .enum(["ready", "incomplete"])
      .describe(
        "`incomplete`: a pull was interrupted, or a file is missing. The model is not served and can be pulled again.",
      ),
    source: z.string().nullable().describe("Source of the model. null if only parts of its files are present."),
    pulled_at: unixSeconds.nullable(),
    capabilities: abilities,
    context_length: z.int().nullable().describe("Context length in tokens. null if the file does not state it."),
    architecture: z
      .string()
      .nullable()
      .describe("Architecture named in the file, such as `qwen3`. null if the file cannot be read."),
    quantization: z
      .string()
      .nullable()
      .describe("Quantization of the weights, such as `Q4_K_M`. null if the file cannot be read."),
    parameters: z.int().nullable().describe("null likewise."),
    memory: memoryNeed.nullable().describe("Memory of the loaded model. null if the file cannot be read."),
    fit: z
      .enum(fits)
      .nullable()
      .describe(
        "The way to load the model. `now`: immediately. `evicting`: after unloading idle models. `waiting`: after busy models have had their time. `reduced`: with a shorter context or fewer slots. `never`: it needs more memory than pinned models leave. null if it is loaded or its need is unknown.",
      ),
    use: z
      .enum(["unloaded", "loading", "loaded", "failed"])
      .describe("`failed`: loading failed. The server's log has the reason, and a later request tries again."),
    in_use: z.int().describe("Number of running and waiting requests of the model."),
  })
  .meta({ id: "PulledModel" });
export type PulledModelWire = z.infer<typeof pulledModelShape>;

export const modelMemoryShape = z
  .object({
    total_bytes: z.int(),
    free_bytes: z.int(),
    pinned_bytes: z.int().describe("Memory of models that are never unloaded for others."),
    evictable_bytes: z.int().describe("Memory of idle models that can be unloaded for others."),
    held: z
      .array(
        z.object({
          id: z.string(),
          bytes: z.int().describe("Reserved for the model."),
          state: z.enum(["loading", "loaded", "leaving", "failed"]),
          in_use: z.int().describe("Number of running and waiting requests of the model."),
          pinned: z.boolean().describe("True if the model stays loaded even if others need memory."),
        }),
      )
      .describe("Models with reserved memory, pulled or not."),
  })
  .meta({ id: "ModelMemory", description: "Memory available to models of this server." });

export const pullRequest = z
  .object({
    source: z
      .string()
      .min(1)
      .max(1024)
      .describe("`hf:owner/repo`, or `hf:owner/repo:file` with a file name, a path or a quantization after the colon."),
    name: z
      .string()
      .max(128)
      .nullish()
      .describe("Id under which the model is served. null: the file name in lower case."),
    dry_run: z
      .boolean()
      .nullish()
      .describe("true: report what would be downloaded, without downloading it. Default false."),
  })
  .meta({ id: "PullRequest" });

export const pullOfferShape = z
  .object({
    object: z.literal("pull_offer"),
    id: z.string().describe("Id under which the model is served."),
    file: z.string().describe("Path of the file in the repository."),
    quantization: z.string().nullable(),
    bytes: z.int(),
    missing_bytes: z.int().describe("Bytes that are still to be downloaded."),
    room_bytes: z.int().describe("Free bytes on the disk."),
    least_memory_bytes: z.int().describe("Minimum memory of a model of this size. The context needs more."),
    fit: z.enum(fits).describe("The way to load the model with its minimum memory, as in `PulledModel`."),
    started: z.boolean().describe("True if the download has begun. false after a dry run."),
  })
  .meta({ id: "PullOffer" });

export const pullShape = z
  .object({
    object: z.literal("pull"),
    id: z.string(),
    source: z.string(),
    bytes: z.int().describe("Bytes on the disk."),
    total_bytes: z.int(),
    failure: z
      .string()
      .nullable()
      .describe(
        "Reason for the failure. null while the pull is running. Another request for the same model continues it.",
      ),
  })
  .meta({ id: "Pull" });
