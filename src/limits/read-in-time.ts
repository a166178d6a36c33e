// Bounds the time that a request waits for the ledger to say what a quota's owner has used.
import { unreadUsageRefusal } from "../domain/limits/limit-refusal.ts";

const maxMs = 2_000;

/** Resolves as `reading`, which goes on whoever gives up. Rejects with `service_unavailable` where that takes too long. */
export async function readInTime(reading: Promise<void>): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(unreadUsageRefusal(new Error("no answer in time"))), maxMs);
  try {
    await Promise.race([reading, late]);
  } finally {
    clearTimeout(timer);
  }
}
