// Stores the first request with each idempotency key in the database, so that all replicas know it.
import { type FirstRequest, type IdempotencyStore, idempotencySeconds } from "../../../domain/idempotency.ts";
import type { Database } from "../../sql/database.ts";
import { written } from "../../sql/outage.ts";
import { integer, named, table, text } from "../../sql/table.ts";

const requests = table<FirstRequest>({
  owner: text,
  key: named("idempotency_key", text),
  request: text,
  at: named("created_at", integer),
  answer: text,
});

export class SqlIdempotentRequests implements IdempotencyStore {
  readonly #db: Database;
  readonly #maxOfOwner: number;

  /** `maxOfOwner` is the number of stored requests of one credential. Older ones are deleted, unless they still run. */
  constructor(db: Database, maxOfOwner = 1_000) {
    this.#db = db;
    this.#maxOfOwner = maxOfOwner;
  }

  claim(first: FirstRequest): Promise<FirstRequest | undefined> {
    const { owner, key, at } = first;
    return written(this.#db, async (tx) => {
      await tx`
        DELETE FROM idempotent_requests
        WHERE owner = ${owner} AND idempotency_key = ${key} AND created_at <= ${at - idempotencySeconds}`;
      const stored = await requests.first(
        tx`SELECT * FROM idempotent_requests WHERE owner = ${owner} AND idempotency_key = ${key}`,
      );
      if (stored) return stored;
      await tx`INSERT INTO idempotent_requests ${tx(requests.row(first))}`;
      await tx`
        DELETE FROM idempotent_requests WHERE owner = ${owner} AND idempotency_key IN (
          SELECT idempotency_key FROM idempotent_requests WHERE owner = ${owner} AND answer IS NOT NULL
          ORDER BY created_at DESC, idempotency_key LIMIT 100 OFFSET ${this.#maxOfOwner})`;
      return undefined;
    });
  }

  async finish(first: FirstRequest): Promise<void> {
    const { owner, key, answer } = first;
    await written(
      this.#db,
      (tx) => tx`
        UPDATE idempotent_requests SET answer = ${answer}
        WHERE owner = ${owner} AND idempotency_key = ${key} AND request = ${first.request}`,
    );
  }

  async release({ owner, key }: Pick<FirstRequest, "owner" | "key">): Promise<void> {
    await written(
      this.#db,
      (tx) => tx`DELETE FROM idempotent_requests WHERE owner = ${owner} AND idempotency_key = ${key}`,
    );
  }

  deleteExpired(nowSeconds: number, limit: number): Promise<number> {
    return written(this.#db, async (tx) => {
      const deleted: unknown[] = await tx`
        DELETE FROM idempotent_requests WHERE (owner, idempotency_key) IN (
          SELECT owner, idempotency_key FROM idempotent_requests
          WHERE created_at <= ${nowSeconds - idempotencySeconds} ORDER BY created_at LIMIT ${limit})
        RETURNING owner`;
      return deleted.length;
    });
  }
}
