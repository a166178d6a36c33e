// Batches as tests make them.
import type { Batch } from "../../src/domain/batches/batch.ts";

export function batchOf(id: string, more: Partial<Batch> = {}): Batch {
  return {
    ...{ id, accountId: "acct_1", environment: "live", keyId: "key_1", appId: null, personId: null, madeBy: null },
    ...{ form: "openai", endpoint: "/v1/chat/completions", inputFileId: "file-1", status: "validating", ending: null },
    ...{ createdAt: 1_000, expiresAt: 9_000, inProgressAt: null, finalizingAt: null, cancellingAt: null },
    ...{ endedAt: null, models: [], total: 0, completed: 0, failed: 0 },
    ...{ promptTokens: 0, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 },
    ...{ outputFileId: null, errorFileId: null, keepSeconds: null, faults: [], metadata: { a: "b" } },
    ...more,
  };
}
