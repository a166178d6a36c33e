// Bounds the time that a request waits for an owner's usage from the ledger.
import { unreadUsageRefusal } from "../domain/limits/limit-refusal.ts";

const maxMs = 2_000;

/** Resolves as `reading`, which continues after a timeout. Rejects with `service_unavailable` after a timeout. */
export async function readInTime(reading: Promise<void>): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(unreadUsageRefusal(new Error("no answer in time"))), maxMs);
  try {
    await Promise.race([reading, late]);
  } finally {
    clearTimeout(timer);
  }
}
