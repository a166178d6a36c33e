// A database as a server that is killed leaves it while the roll-ups of many keys are not written yet.
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { openUsageWriter } from "../../src/ledger/usage/usage-writer.ts";
import type { Database } from "../../src/storage/sql/database.ts";

/** Adds a request of each of `count` keys; their ids. */
export async function addGatheredUsage(db: Database, accountId: string, count = 300): Promise<string[]> {
  const records = Array.from(
    { length: count },
    (_, i): UsageRecord => ({
      ...{ requestId: `req_gathered_${i}`, at: 1_800_000_000, accountId, keyId: `key_${i}`, appId: null },
      ...{ environment: "live", operation: "chat", model: "m", stream: false, outcome: "completed", errorCode: null },
      ...{ promptTokens: 10, completionTokens: 5, estimated: false, nanoUsd: 25, capped: false, upstream: "up" },
      ...{ durationMs: 9, firstTokenMs: 1, queueMs: 0 },
    }),
  );
  const writer = await openUsageWriter(db);
  await writer.insert(records);
  writer.close();
  return records.map(({ requestId }) => requestId);
}
