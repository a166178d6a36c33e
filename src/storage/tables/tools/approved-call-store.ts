// Approvals whose tool call was started, in the database.
import type { ApprovedCallStore, MadeCall } from "../../../domain/tools/approved-call.ts";
import type { Database } from "../../sql/database.ts";
import { syncCommits } from "../../sql/durable-commits.ts";
import { added, written } from "../../sql/outage.ts";

export class SqlApprovedCalls implements ApprovedCallStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async take(approval: string, call: MadeCall, expiresAt: number): Promise<MadeCall | undefined> {
    const row = { approval, call_id: call.callId, response_id: call.responseId, expires_at: expiresAt };
    // This update changes nothing, but lets the statement return an existing row.
    const taken: { call_id: string; response_id: string }[] = await added(
      this.#db,
      (tx) => tx`
        INSERT INTO approved_calls ${tx(row)}
        ON CONFLICT (approval) DO UPDATE SET approval = excluded.approval
        RETURNING call_id, response_id`,
    );
    const [by] = taken;
    if (by && by.call_id !== call.callId) return { callId: by.call_id, responseId: by.response_id };
    // A power cut must not release the approval for a second use: the call may have run.
    await syncCommits(this.#db);
    return undefined;
  }

  deleteExpired(nowSeconds: number, limit: number): Promise<number> {
    return written(this.#db, async (tx) => {
      const rows: unknown[] = await tx`
        DELETE FROM approved_calls WHERE approval IN (
          SELECT approval FROM approved_calls WHERE expires_at <= ${nowSeconds} ORDER BY expires_at LIMIT ${limit})
        RETURNING approval`;
      return rows.length;
    });
  }
}
