// Schemas of model server processes that are started on demand, as operators see and change them.
import { z } from "zod";
import { modelProcessStates } from "../domain/models/model-process-state.ts";
import { unixSeconds } from "./parts.ts";

const pool = z.string().describe("`ram`, `gpu0`, `gpu1` and so on.");

export const modelProcessShape = z
  .object({
    object: z.literal("model_process"),
    name: z.string().describe("Name of the command's upstream."),
    models: z.array(z.string()),
    state: z
      .enum(modelProcessStates)
      .describe(
        "`waiting`: waiting for memory. `restarting`: the process ended and will be restarted soon. `failed`: the process ended too often or can never fit in memory, and requests are refused for some seconds.",
      ),
    since: unixSeconds,
    failure: z
      .string()
      .nullable()
      .describe("Reason for the last failure. null: no failure since the process was loaded."),
    pinned: z.boolean().describe("True if the process is never stopped to free memory for others."),
    memory: z.record(z.string(), z.int()).describe("Bytes that are or would be reserved for the process, by pool."),
    running: z.int().describe("Number of running requests."),
    waiting: z.int().describe("Number of waiting requests."),
    waiting_by: z
      .array(z.object({ account_id: z.string(), requests: z.int() }))
      .describe("Accounts of the waiting requests."),
    behind: z
      .array(z.string())
      .describe("While waiting for memory: the processes that must stop or free memory first."),
    is_next: z.boolean().describe("True if this process is the first to be stopped if memory is needed."),
    starts: z.int(),
    evictions: z
      .int()
      .describe("Number of times that the process was stopped or put to sleep to free memory for others."),
    failures: z.int(),
    load_seconds: z.number().describe("Total loading time of all starts, in seconds."),
  })
  .meta({ id: "ModelProcess" });
export type ModelProcessWire = z.infer<typeof modelProcessShape>;

export const modelProcessList = z
  .object({
    object: z.literal("list"),
    data: z.array(modelProcessShape),
    memory: z
      .array(z.object({ pool, total: z.int(), used: z.int().describe("Reserved bytes.") }))
      .describe("Memory shared by the processes."),
  })
  .meta({ id: "ModelProcessList" });

export const changeModelProcessRequest = z
  .strictObject({
    loaded: z
      .boolean()
      .optional()
      .describe("true: load the process as soon as memory is free. false: stop it once it has no running requests."),
    pinned: z
      .boolean()
      .optional()
      .describe("true: load the process and never stop it for others, until the server stops."),
  })
  .meta({ id: "ChangeModelProcessRequest" });
export type ChangeModelProcessRequest = z.infer<typeof changeModelProcessRequest>;

export const modelProcessOutput = z
  .object({
    object: z.literal("list"),
    data: z.array(z.object({ number: z.int(), at: unixSeconds, text: z.string() })),
  })
  .meta({ id: "ModelProcessOutput" });
