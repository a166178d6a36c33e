// The memory that models may use by default: most of what this machine has.
import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { type Amounts, gpuPool, ramPool } from "./amounts.ts";
import { findGpus } from "./gpus.ts";

/** The part of RAM for models. The rest is for the gateway, the system and its file cache. */
const ramPart = 0.8;
/** The part of a GPU's free memory for models: drivers and libraries take a little more than each process counts. */
const gpuPart = 0.95;

/**
 * Returns part of the RAM of this machine or its container, and part of the free memory of each GPU. `withGpus` says
 * whether to ask the GPU drivers, which takes a moment.
 */
export async function machineMemory(withGpus: boolean): Promise<Amounts> {
  const gpus = withGpus ? await findGpus() : [];
  return {
    [ramPool]: Math.floor(ramPart * Math.min(totalmem(), ...containerLimits())),
    ...Object.fromEntries(gpus.map(({ index, free }) => [gpuPool(index), Math.floor(gpuPart * free)])),
  };
}

/** Returns the limits of cgroup v2 and v1. `max`, and the huge number that stands for it, are no limits. */
function containerLimits(): number[] {
  return ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"].flatMap((file) => {
    try {
      const limit = Number(readFileSync(file, "utf8"));
      return Number.isFinite(limit) && limit > 0 ? [limit] : [];
    } catch {
      return [];
    }
  });
}
