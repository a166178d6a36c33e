// What a test server has recorded of a request's usage, read from its database.
import { join } from "node:path";
import { openDatabase } from "../../src/storage/sql/database.ts";

export interface RecordedUsage {
  request_id: string;
  operation: string;
  model: string;
  outcome: string;
  prompt_tokens: number;
  completion_tokens: number;
  estimated: number;
}

/** Records are written in batches a moment after the request: wait for them with `until`. */
export async function recordedUsage(dataDir: string): Promise<RecordedUsage[]> {
  const db = await openDatabase(join(dataDir, "headrace.db"));
  try {
    return await db`
      SELECT request_id, operation, model, outcome, prompt_tokens, completion_tokens, estimated
      FROM usage_records ORDER BY at, request_id`;
  } finally {
    await db.close();
  }
}
