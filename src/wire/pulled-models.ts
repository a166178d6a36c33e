// The shapes of models that were pulled to a server, as operators see, fetch and delete them.

import { z } from "zod";
import { byCapability } from "../domain/models/capabilities.ts";
import { fits } from "../domain/models/memory-need.ts";
import { unixSeconds } from "./parts.ts";

const memoryNeed = z
  .object({
    bytes: z.int().describe("All of it."),
    least_bytes: z.int().describe("With the shortest context that it is loaded with."),
    weights: z.int(),
    cache: z.int().describe("What attention keeps of the tokens of all places."),
    compute: z.int().describe("Buffers of a batch, and the process."),
    context_length: z.int().describe("Tokens of one place for which `bytes` holds."),
    parallel: z.int().describe("Places for which `bytes` holds: requests that are computed at once."),
  })
  .meta({ id: "MemoryNeed", description: "Bytes of memory, estimated from what the file says of itself." });

const abilities = z
  .object(byCapability(() => z.boolean().optional()))
  .optional()
  .describe("Left out where nobody says.");

export const pulledModelShape = z
  .object({
    object: z.literal("pulled_model"),
    id: z.string(),
    bytes: z.int().describe("The size of its files on the disk."),
    state: z
      .enum(["ready", "incomplete"])
      .describe("`incomplete`: a pull was interrupted, or a file is gone; it is not served, and can be pulled again."),
    source: z.string().nullable().describe("Where it came from; null where only parts of it are here."),
    pulled_at: unixSeconds.nullable(),
    capabilities: abilities,
    context_length: z.int().nullable().describe("Tokens; null where the file does not say."),
    architecture: z
      .string()
      .nullable()
      .describe("Its name in the file, such as `qwen3`; null where it cannot be read."),
    quantization: z.string().nullable().describe("How its weights are stored, such as `Q4_K_M`; null likewise."),
    parameters: z.int().nullable().describe("null likewise."),
    memory: memoryNeed.nullable().describe("What it takes once it is loaded; null where the file cannot be read."),
    fit: z
      .enum(fits)
      .nullable()
      .describe(
        "Whether it can be loaded. `now`; `evicting`: once idle models have left for it; `waiting`: once models that work have had their time; `reduced`: with a shorter context or fewer places; `never`: it needs more memory than there is beside models that are kept. null where it is loaded, or its need is not known.",
      ),
    use: z
      .enum(["unloaded", "loading", "loaded", "failed"])
      .describe("`failed`: it could not be loaded; the server's log says why, and a later request tries again."),
    in_use: z.int().describe("Requests that are with it, or wait for it."),
  })
  .meta({ id: "PulledModel" });
export type PulledModelWire = z.infer<typeof pulledModelShape>;

export const modelMemoryShape = z
  .object({
    total_bytes: z.int(),
    free_bytes: z.int(),
    pinned_bytes: z.int().describe("Held by models that never leave for others."),
    evictable_bytes: z.int().describe("Held by models that are idle and would leave for another one."),
    held: z
      .array(
        z.object({
          id: z.string(),
          bytes: z.int().describe("Set aside for it."),
          state: z.enum(["loading", "loaded", "leaving", "failed"]),
          in_use: z.int().describe("Requests that are with it, or wait for it."),
          pinned: z.boolean().describe("Kept, whoever else wants its memory."),
        }),
      )
      .describe("The models that memory is set aside for, pulled or not."),
  })
  .meta({ id: "ModelMemory", description: "Memory that models of this server may have." });

export const pullRequest = z
  .object({
    source: z
      .string()
      .min(1)
      .max(1024)
      .describe(
        "`hf:owner/repo`, or `hf:owner/repo:file` with a file name, a path or a quantization behind the colon.",
      ),
    name: z.string().max(128).nullish().describe("Id to serve it under. null: the file's name in lower case."),
    dry_run: z.boolean().nullish().describe("true: only told what would be fetched. Default false."),
  })
  .meta({ id: "PullRequest" });

export const pullOfferShape = z
  .object({
    object: z.literal("pull_offer"),
    id: z.string().describe("The id under which it is served."),
    file: z.string().describe("Its path in the repository."),
    quantization: z.string().nullable(),
    bytes: z.int(),
    missing_bytes: z.int().describe("Those that are not on the disk yet."),
    room_bytes: z.int().describe("Those that the disk has room for."),
    least_memory_bytes: z.int().describe("Memory that any model of this size takes; its context takes more."),
    fit: z.enum(fits).describe("Whether the least would fit, as with `PulledModel`."),
    started: z.boolean().describe("false after a dry run."),
  })
  .meta({ id: "PullOffer" });

export const pullShape = z
  .object({
    object: z.literal("pull"),
    id: z.string(),
    source: z.string(),
    bytes: z.int().describe("Those on the disk."),
    total_bytes: z.int(),
    failure: z
      .string()
      .nullable()
      .describe("Why it came to nothing; null while it goes on. Asked for again, it continues."),
  })
  .meta({ id: "Pull" });
