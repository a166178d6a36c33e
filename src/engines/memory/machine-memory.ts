// The default memory budget for models: most of the memory of this machine.
import { readFileSync } from "node:fs";
import { totalmem } from "node:os";
import { type Amounts, gpuPool, ramPool } from "./amounts.ts";
import { findGpus } from "./gpus.ts";

/** The fraction of RAM for models. The rest is for the gateway, the system and its file cache. */
const ramPart = 0.8;
/** The fraction of a GPU's free memory for models. Drivers and libraries use a little that no process counts. */
const gpuPart = 0.95;

/**
 * Returns the default memory budget, from the RAM of the machine or container. `withGpus` adds the free memory
 * of each GPU, which takes a moment to read.
 */
export async function machineMemory(withGpus: boolean): Promise<Amounts> {
  const gpus = withGpus ? await findGpus() : [];
  return {
    [ramPool]: Math.floor(ramPart * Math.min(totalmem(), ...containerLimits())),
    ...Object.fromEntries(gpus.map(({ index, free }) => [gpuPool(index), Math.floor(gpuPart * free)])),
  };
}

/** Returns the memory limits of cgroup v2 and v1. `max` means no limit; cgroup v1 has a huge number instead. */
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
