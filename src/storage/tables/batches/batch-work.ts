// The work on batches in the database: a claim of a batch or line is exclusive until its lease is over.
import type {
  AnsweredLine,
  Batch,
  BatchFault,
  BatchLine,
  BatchWork,
  Claim,
  ClaimedLine,
  LineAnswer,
  LineUsage,
  UnderWay,
  UnpaidLine,
} from "../../../domain/batches/batch.ts";
import type { SealFor } from "../../../domain/seal.ts";
import { adding, type Database, databaseSeconds, dialectOf, writing } from "../../sql/database.ts";
import { added, available, written } from "../../sql/outage.ts";
import { batches, batchLines } from "./batch-rows.ts";

interface LineRow {
  line: number | string;
  custom_id: string;
  done_at: number | string | null;
  answer: string | null;
  is_error: number;
}

export class SqlBatchWork implements BatchWork {
  readonly #db: Database;
  readonly #sealFor: SealFor;

  constructor(db: Database, sealFor: SealFor) {
    this.#db = db;
    this.#sealFor = sealFor;
  }

  async claimBatch({ id, leaseSeconds }: Claim, afterAccount = ""): Promise<Batch | undefined> {
    const db = this.#db;
    const now = databaseSeconds(db);
    const due = db`status IN ('validating', 'finalizing') AND claimed_until <= ${now}`;
    // A read comes first, because usually there is no work, and then no writer is blocked.
    const [found]: { id: string }[] = await available(
      db`
        SELECT id FROM batches WHERE ended_at IS NULL AND ${due}
        ORDER BY CASE WHEN account_id > ${afterAccount} THEN 0 ELSE 1 END, account_id, created_at LIMIT 1`,
    );
    if (!found) return undefined;
    const [row]: object[] = await available(
      adding(
        db,
        async (tx) =>
          await tx`
          UPDATE batches SET claim = ${id}, claimed_until = ${databaseSeconds(tx)} + ${leaseSeconds}
          WHERE id = ${found.id} AND status IN ('validating', 'finalizing') AND claimed_until <= ${databaseSeconds(tx)}
          RETURNING *`,
      ),
    );
    return row && batches.record(row);
  }

  beginLines(batchId: string, claim: Claim): Promise<boolean> {
    return available(
      writing(this.#db, async (tx) => {
        const [mine] = await tx`SELECT id FROM batches WHERE id = ${batchId} AND claim = ${claim.id}`;
        if (!mine) return false;
        await tx`DELETE FROM batch_lines WHERE batch_id = ${batchId}`;
        return true;
      }),
    );
  }

  async addLines(batchId: string, lines: readonly BatchLine[], { id }: Claim): Promise<boolean> {
    const rows = lines.map((line) => ({ ...batchLines.row(line), attempts: 0, due_at: 0, claimed_until: 0, paid: 0 }));
    return await available(
      adding(this.#db, async (tx) => {
        const [mine] = await tx`SELECT id FROM batches WHERE id = ${batchId} AND claim = ${id} ${this.#locking(tx)}`;
        if (!mine) return false;
        // Another process may have validated the same lines after a lost lease.
        await tx`INSERT INTO batch_lines ${tx(rows)} ON CONFLICT (batch_id, line) DO NOTHING`;
        return true;
      }),
    );
  }

  async begin(
    { id, models, total }: Pick<Batch, "id" | "models" | "total">,
    claim: Claim,
    now: number,
  ): Promise<boolean> {
    const columns = { models: JSON.stringify(models), total, in_progress_at: now };
    const rows: unknown[] = await written(
      this.#db,
      (tx) => tx`
        UPDATE batches SET ${tx(columns)}, claim = NULL, claimed_until = 0,
          status = CASE WHEN ending IS NULL THEN 'in_progress' ELSE 'finalizing' END
        WHERE id = ${id} AND claim = ${claim.id} AND ended_at IS NULL RETURNING id`,
    );
    return rows.length > 0;
  }

  fail(batchId: string, claim: Claim, faults: readonly BatchFault[], now: number): Promise<boolean> {
    return this.#move(batchId, claim, { status: "failed", faults: JSON.stringify(faults), ended_at: now });
  }

  finish(
    { id, ending, outputFileId, errorFileId }: Pick<Batch, "id" | "ending" | "outputFileId" | "errorFileId">,
    claim: Claim,
    now: number,
  ): Promise<boolean> {
    const files = { output_file_id: outputFileId, error_file_id: errorFileId };
    return this.#move(id, claim, { status: ending ?? "completed", ended_at: now, ...files });
  }

  async release(batchId: string, { id }: Claim, inSeconds: number): Promise<void> {
    await written(
      this.#db,
      (tx) => tx`
        UPDATE batches SET claim = NULL, claimed_until = ${databaseSeconds(tx)} + ${inSeconds}
        WHERE id = ${batchId} AND claim = ${id}`,
    );
  }

  open(limit: number): Promise<Batch[]> {
    return available(
      batches.all(this.#db`
        SELECT * FROM batches WHERE ended_at IS NULL AND status = 'in_progress' ORDER BY created_at LIMIT ${limit}`),
    );
  }

  async claimLines(
    batchId: string,
    models: readonly string[],
    limit: number,
    { id, leaseSeconds }: Claim,
  ): Promise<ClaimedLine[]> {
    const rows: (object & { attempts: number | string })[] = await available(
      adding(this.#db, async (tx) => {
        const now = databaseSeconds(tx);
        // Rows that another process is claiming are skipped.
        const passing = dialectOf(this.#db) === "postgres" ? tx`FOR UPDATE SKIP LOCKED` : tx``;
        return await tx`
          WITH next AS (
            SELECT line FROM batch_lines
            WHERE batch_id = ${batchId} AND done_at IS NULL AND claimed_until <= ${now} AND due_at <= ${now}
              AND model IN ${tx([...models])}
            ORDER BY line LIMIT ${limit} ${passing})
          UPDATE batch_lines SET claim = ${id}, claimed_until = ${now} + ${leaseSeconds}
          WHERE batch_id = ${batchId} AND done_at IS NULL AND claimed_until <= ${now} AND line IN (SELECT line FROM next)
            AND EXISTS (SELECT 1 FROM batches WHERE id = ${batchId} AND status = 'in_progress')
          RETURNING *`;
      }),
    );
    return rows.map((row) => ({ ...batchLines.record(row), attempts: Number(row.attempts) }));
  }

  answered({ batchId, line }: ClaimedLine, { text, isError, usage }: LineAnswer, { id }: Claim): Promise<boolean> {
    const end = usage?.end;
    const { cachedTokens = 0, reasoningTokens = 0 } = end?.parts ?? {};
    const [completed, failed] = isError ? [0, 1] : [1, 0];
    const columns = {
      answer: this.#sealFor(purposeOf(batchId, line)).seal(text),
      is_error: failed,
      usage_record: usage ? JSON.stringify(usage) : null,
      paid: usage ? 0 : 1,
    };
    return available(
      adding(this.#db, async (tx) => {
        // The lock orders this answer and the end of the batch: an answer is counted, charged and in the output, or
        // none of these.
        const [open] = await tx`
          SELECT id FROM batches WHERE id = ${batchId} AND status = 'in_progress' ${this.#locking(tx)}`;
        if (!open) return false;
        const [row] = await tx`
          UPDATE batch_lines SET ${tx(columns)}, done_at = ${databaseSeconds(tx)}
          WHERE batch_id = ${batchId} AND line = ${line} AND claim = ${id} AND done_at IS NULL RETURNING line`;
        if (!row) return false;
        await tx`
          UPDATE batches SET completed = completed + ${completed}, failed = failed + ${failed},
            prompt_tokens = prompt_tokens + ${end?.promptTokens ?? 0},
            cached_tokens = cached_tokens + ${cachedTokens},
            completion_tokens = completion_tokens + ${end?.completionTokens ?? 0},
            reasoning_tokens = reasoning_tokens + ${reasoningTokens}
          WHERE id = ${batchId}`;
        return true;
      }),
    );
  }

  async releaseLine(
    { batchId, line }: ClaimedLine,
    { id }: Claim,
    { inSeconds, failed }: { inSeconds: number; failed: boolean },
  ): Promise<void> {
    await written(
      this.#db,
      (tx) => tx`
        UPDATE batch_lines SET claim = NULL, claimed_until = 0, attempts = attempts + ${failed ? 1 : 0},
          due_at = ${databaseSeconds(tx)} + ${inSeconds}
        WHERE batch_id = ${batchId} AND line = ${line} AND claim = ${id} AND done_at IS NULL`,
    );
  }

  async renew({ id, leaseSeconds }: Claim, { batchId, lines }: UnderWay): Promise<void> {
    const byBatch = Map.groupBy(lines, (line) => line.batchId);
    await added(this.#db, async (tx) => {
      const until = tx`${databaseSeconds(tx)} + ${leaseSeconds}`;
      if (batchId !== undefined) {
        await tx`
          UPDATE batches SET claimed_until = ${until} WHERE id = ${batchId} AND claim = ${id} AND ended_at IS NULL`;
      }
      for (const [batch, some] of byBatch) {
        await tx`
          UPDATE batch_lines SET claimed_until = ${until}
          WHERE batch_id = ${batch} AND line IN ${tx(some.map(({ line }) => line))} AND claim = ${id} AND done_at IS NULL`;
      }
    });
  }

  async releaseAll(): Promise<void> {
    await written(this.#db, async (tx) => {
      await tx`UPDATE batches SET claim = NULL, claimed_until = 0 WHERE claim IS NOT NULL AND ended_at IS NULL`;
      await tx`UPDATE batch_lines SET claim = NULL, claimed_until = 0 WHERE claim IS NOT NULL AND paid = 0`;
    });
  }

  async endDue(nowSeconds: number): Promise<void> {
    const db = this.#db;
    const isDue = (tx: Database) => tx`status IN ('in_progress', 'validating') AND ended_at IS NULL
      AND (expires_at <= ${nowSeconds} OR (status = 'in_progress' AND completed + failed >= total))`;
    const due: unknown[] = await available(db`SELECT id FROM batches WHERE ${isDue(db)} LIMIT 1`);
    if (due.length === 0) return;
    await written(
      db,
      (tx) => tx`
        UPDATE batches SET status = 'finalizing', finalizing_at = ${nowSeconds}, claim = NULL, claimed_until = 0,
          ending = CASE WHEN status = 'in_progress' AND completed + failed >= total THEN 'completed' ELSE 'expired' END
        WHERE ${isDue(tx)}`,
    );
  }

  async unpaid(limit: number, batchId?: string): Promise<UnpaidLine[]> {
    const db = this.#db;
    const whose = batchId === undefined ? db`claimed_until <= ${databaseSeconds(db)}` : db`batch_id = ${batchId}`;
    const rows: { batch_id: string; line: number | string; usage_record: string }[] = await available(db`
      SELECT batch_id, line, usage_record FROM batch_lines WHERE done_at IS NOT NULL AND paid = 0 AND ${whose}
      LIMIT ${limit}`);
    return rows.map(({ batch_id, line, usage_record }) => ({
      batchId: batch_id,
      line: Number(line),
      usage: JSON.parse(usage_record) as LineUsage,
    }));
  }

  async paid(lines: readonly Pick<BatchLine, "batchId" | "line">[]): Promise<void> {
    if (lines.length === 0) return;
    const byBatch = Map.groupBy(lines, ({ batchId }) => batchId);
    await written(this.#db, async (tx) => {
      for (const [batchId, some] of byBatch) {
        await tx`
          UPDATE batch_lines SET paid = 1 WHERE batch_id = ${batchId} AND line IN ${tx(some.map(({ line }) => line))}`;
      }
    });
  }

  async lines(batchId: string, after: number, limit: number): Promise<AnsweredLine[]> {
    const rows: LineRow[] = await available(this.#db`
      SELECT line, custom_id, done_at, answer, is_error FROM batch_lines
      WHERE batch_id = ${batchId} AND line > ${after} ORDER BY line LIMIT ${limit}`);
    return rows.map(({ line, custom_id: customId, done_at: doneAt, answer, is_error: isError }) => ({
      ...{ line: Number(line), customId },
      answer:
        doneAt === null
          ? null
          : { text: this.#sealFor(purposeOf(batchId, Number(line))).open(answer ?? ""), isError: isError === 1 },
    }));
  }

  async forgetLines(limit: number): Promise<number> {
    const db = this.#db;
    const [ended]: { id: string }[] = await available(
      db`SELECT id FROM batches WHERE ended_at IS NOT NULL AND has_lines = 1 LIMIT 1`,
    );
    if (!ended) return 0;
    const rows: unknown[] = await written(db, async (tx) => {
      const deleted: unknown[] = await tx`
        DELETE FROM batch_lines WHERE batch_id = ${ended.id} AND line IN (
          SELECT line FROM batch_lines WHERE batch_id = ${ended.id} LIMIT ${limit}) RETURNING line`;
      if (deleted.length < limit) await tx`UPDATE batches SET has_lines = 0 WHERE id = ${ended.id}`;
      return deleted;
    });
    return rows.length;
  }

  /** Locks the selected row until the transaction ends. SQLite needs no clause, because all rows are locked there. */
  #locking(tx: Database) {
    return dialectOf(this.#db) === "postgres" ? tx`FOR NO KEY UPDATE` : tx``;
  }

  async #move(id: string, claim: Claim, columns: Record<string, string | number | null>): Promise<boolean> {
    const rows: unknown[] = await written(
      this.#db,
      (tx) => tx`
        UPDATE batches SET ${tx(columns)}, claim = NULL, claimed_until = 0
        WHERE id = ${id} AND claim = ${claim.id} AND ended_at IS NULL RETURNING id`,
    );
    return rows.length > 0;
  }
}

/** Returns the seal's purpose. It names batch and line, so an answer opens only in its own row. */
function purposeOf(batchId: string, line: number): string {
  return `batch_lines.answer ${batchId} ${line}`;
}
