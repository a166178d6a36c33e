// The memory of this machine, including a container's limit.
import { freemem, totalmem } from "node:os";

/** Returns the bytes that this process can still take. */
export function availableMemoryBytes(): number {
  return Math.min(freemem(), process.availableMemory());
}

/** Returns the total and the free memory in bytes. */
export function machineMemory(): { total: number; free: number } {
  // Without a limit, the value is zero or more than the total memory.
  const bound = process.constrainedMemory();
  return { total: bound > 0 ? Math.min(bound, totalmem()) : totalmem(), free: availableMemoryBytes() };
}
