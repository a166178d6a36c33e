// Limits the time that a request waits for usage from the ledger.
import { unreadUsageRefusal } from "../domain/limits/limit-refusal.ts";

const maxMs = 2_000;

/** Resolves when `reading` does. Rejects with `service_unavailable` after two seconds; `reading` continues. */
export async function readInTime(reading: Promise<void>): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(unreadUsageRefusal(new Error("no answer in time"))), maxMs);
  try {
    await Promise.race([reading, late]);
  } finally {
    clearTimeout(timer);
  }
}
