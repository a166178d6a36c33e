// Batches in the database, as their owners see them.
import type { Batch, BatchPage, BatchStore } from "../../../domain/batches/batch.ts";
import type { ResponseOwner } from "../../../domain/models/stored-response.ts";
import { type Database, writing } from "../../sql/database.ts";
import { available, written } from "../../sql/outage.ts";
import { madeFor } from "../files/file-store.ts";
import { batches } from "./batch-rows.ts";

const forgottenAtOnce = 200;

export class SqlBatchStore implements BatchStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  create(batch: Batch, maxOpen: number): Promise<boolean> {
    const row = { ...batches.row(batch), claimed_until: 0, has_lines: 1 };
    return available(
      writing(this.#db, async (tx) => {
        const [open]: { count: number | string }[] = await tx`
          SELECT count(*) AS count FROM batches WHERE account_id = ${batch.accountId} AND ended_at IS NULL`;
        if (Number(open?.count) >= maxOpen) return false;
        await tx`INSERT INTO batches ${tx(row)}`;
        return true;
      }),
    );
  }

  find(owner: ResponseOwner, id: string): Promise<Batch | undefined> {
    return available(
      batches.first(this.#db`SELECT * FROM batches AS c WHERE id = ${id} AND ${madeFor(this.#db, owner)}`),
    );
  }

  async list(owner: ResponseOwner, { form, after, before, limit }: BatchPage): Promise<Batch[] | undefined> {
    const db = this.#db;
    const from = after ?? before;
    const last = from === undefined ? undefined : await this.find(owner, from);
    if (from !== undefined && !last) return undefined;
    const [beyond, direction] = after === undefined && before !== undefined ? [db`>`, db`ASC`] : [db`<`, db`DESC`];
    const found = await available(
      batches.all(db`
        SELECT * FROM batches AS c WHERE ${madeFor(db, owner)} ${form === undefined ? db`` : db`AND form = ${form}`}
          ${last ? db`AND (created_at, id) ${beyond} (${last.createdAt}, ${last.id})` : db``}
        ORDER BY created_at ${direction}, id ${direction} LIMIT ${limit}`),
    );
    return after === undefined && before !== undefined ? found.toReversed() : found;
  }

  async cancel(owner: ResponseOwner, id: string, nowSeconds: number): Promise<Batch | undefined> {
    const found = await this.find(owner, id);
    if (!found || found.endedAt !== null || found.ending !== null) return found;
    const mine = madeFor(this.#db, owner);
    return await available(
      writing(this.#db, async (tx) => {
        // The lines stay unchanged: lines of an ending batch are neither claimed nor answered.
        await tx`
          UPDATE batches AS c SET status = 'finalizing', ending = 'cancelled', cancelling_at = ${nowSeconds},
            finalizing_at = ${nowSeconds}, claim = NULL, claimed_until = 0
          WHERE id = ${id} AND ${mine} AND (status = 'in_progress' OR (status = 'validating' AND form = 'openai'))`;
        // An Anthropic batch has a result for each request, so all its lines are read before it ends.
        await tx`
          UPDATE batches AS c SET ending = 'cancelled', cancelling_at = ${nowSeconds}
          WHERE id = ${id} AND ${mine} AND status = 'validating' AND ending IS NULL`;
        return await batches.first(tx`SELECT * FROM batches AS c WHERE id = ${id} AND ${mine}`);
      }),
    );
  }

  async delete(owner: ResponseOwner, id: string): Promise<boolean> {
    const batch = await this.find(owner, id);
    if (!batch || batch.endedAt === null) return false;
    // Deletes the remaining lines first, a few at a time, because they are many and other writers wait.
    const forget = () =>
      written(
        this.#db,
        (tx): PromiseLike<unknown[]> => tx`
          DELETE FROM batch_lines WHERE batch_id = ${id} AND line IN (
            SELECT line FROM batch_lines WHERE batch_id = ${id} LIMIT ${forgottenAtOnce}) RETURNING line`,
      );
    while ((await forget()).length > 0);
    const rows: unknown[] = await written(this.#db, (tx) => tx`DELETE FROM batches WHERE id = ${id} RETURNING id`);
    return rows.length > 0;
  }

  async deleteEnded(before: number, limit: number): Promise<number> {
    const rows: unknown[] = await written(
      this.#db,
      (tx) => tx`
        DELETE FROM batches WHERE id IN (
          SELECT id FROM batches WHERE ended_at < ${before} AND has_lines = 0 ORDER BY ended_at LIMIT ${limit}) RETURNING id`,
    );
    return rows.length;
  }
}
