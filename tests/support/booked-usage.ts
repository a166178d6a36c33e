// Every figure that a test server has booked for its requests, read from its database while it runs or afterwards.
import { Database } from "bun:sqlite";
import { join } from "node:path";

export interface BookedUsage {
  request_id: string;
  operation: string;
  outcome: string;
  error_code: string | null;
  prompt_tokens: number;
  completion_tokens: number;
  estimated: number;
  capped: number;
  queue_ms: number;
}

/** In the order of their requests. What a running server has settled a moment ago is there after `ledger.flush()`. */
export function bookedUsage(dataDir: string): BookedUsage[] {
  const db = new Database(join(dataDir, "headrace.db"));
  try {
    return db
      .query<BookedUsage, []>(
        `SELECT request_id, operation, outcome, error_code, prompt_tokens, completion_tokens, estimated, capped, queue_ms
         FROM usage_records ORDER BY at, request_id`,
      )
      .all();
  } finally {
    db.close();
  }
}
