// The shapes of processes that serve models and are started for requests, as operators see and change them.
import { z } from "zod";
import { modelProcessStates } from "../domain/models/model-process-state.ts";
import { unixSeconds } from "./parts.ts";

const pool = z.string().describe("`ram`, or `gpu0` and the like.");

export const modelProcessShape = z
  .object({
    object: z.literal("model_process"),
    name: z.string().describe("The upstream that it is."),
    models: z.array(z.string()),
    state: z
      .enum(modelProcessStates)
      .describe(
        "`waiting`: for memory. `restarting`: it ended, and is tried again in a moment. `failed`: it ended too often or can never fit; requests are refused for some seconds.",
      ),
    since: unixSeconds,
    failure: z.string().nullable().describe("Why it failed last; null: it did not since it was loaded."),
    pinned: z.boolean().describe("It is never stopped for others."),
    memory: z.record(z.string(), z.int()).describe("Bytes by pool that are set aside for it, or would be."),
    running: z.int().describe("Requests that it works on."),
    waiting: z.int().describe("Requests that wait for it."),
    waiting_by: z.array(z.object({ account_id: z.string(), requests: z.int() })).describe("Whose those are."),
    behind: z
      .array(z.string())
      .describe("While it waits for memory: the processes that have to end or to yield first."),
    is_next: z.boolean().describe("Whether it would be stopped first, were memory needed."),
    starts: z.int(),
    evictions: z.int().describe("How often it was stopped or put to sleep for others."),
    failures: z.int(),
    load_seconds: z.number().describe("Seconds that its loading took, of all starts together."),
  })
  .meta({ id: "ModelProcess" });
export type ModelProcessWire = z.infer<typeof modelProcessShape>;

export const modelProcessList = z
  .object({
    object: z.literal("list"),
    data: z.array(modelProcessShape),
    memory: z
      .array(z.object({ pool, total: z.int(), used: z.int().describe("What is set aside, in bytes.") }))
      .describe("The memory that they share."),
  })
  .meta({ id: "ModelProcessList" });

export const changeModelProcessRequest = z
  .strictObject({
    loaded: z
      .boolean()
      .optional()
      .describe("true: load it now, as soon as there is memory. false: stop it once nothing is in flight."),
    pinned: z.boolean().optional().describe("Until the server ends: true loads it, and keeps it from being stopped."),
  })
  .meta({ id: "ChangeModelProcessRequest" });
export type ChangeModelProcessRequest = z.infer<typeof changeModelProcessRequest>;

export const modelProcessOutput = z
  .object({
    object: z.literal("list"),
    data: z.array(z.object({ number: z.int(), at: unixSeconds, text: z.string() })),
  })
  .meta({ id: "ModelProcessOutput" });
