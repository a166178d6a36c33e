// Sums what an account has stored: chats, responses, and items of conversations.
import type { StoredSizes } from "../../../domain/models/stored-response.ts";
import type { Database } from "../../sql/database.ts";
import { reached } from "../../sql/outage.ts";

/** Bytes of a row besides its content. */
const rowBytes = 512;

export class SqlStoredSizes implements StoredSizes {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async sizeOf(accountId: string): Promise<number> {
    const rows: { size: number | string; count: number | string }[] = await reached(
      "Stored responses",
      this.#db`
        SELECT COALESCE(SUM(size), 0) AS size, COUNT(*) AS count FROM stored_chats WHERE account_id = ${accountId}
        UNION ALL
        SELECT COALESCE(SUM(input_size + output_size), 0), COUNT(*)
          FROM stored_responses WHERE account_id = ${accountId}
        UNION ALL
        SELECT COALESCE(SUM(size), 0), COUNT(*) FROM conversation_items WHERE account_id = ${accountId}`,
    );
    return rows.reduce((sum, { size, count }) => sum + Number(size) + Number(count) * rowBytes, 0);
  }
}
