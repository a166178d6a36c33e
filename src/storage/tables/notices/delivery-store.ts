// The queue of deliveries in the database: what a process takes is nobody else's until it says what came of it, or dies.
import type {
  ClaimBounds,
  ClaimedDelivery,
  DeliveryStore,
  ListedDelivery,
  TriedDelivery,
} from "../../../domain/notices/webhook.ts";
import type { Database } from "../../sql/database.ts";
import { added, available, written } from "../../sql/outage.ts";
import { table, text } from "../../sql/table.ts";
import { deliveries } from "./notice-rows.ts";

const listed = table<ListedDelivery>({ ...deliveries.columns, type: text });

export class SqlDeliveryStore implements DeliveryStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async claim(nowSeconds: number, bounds: ClaimBounds): Promise<ClaimedDelivery[]> {
    const due: unknown[] = await available(this.#due(this.#db, nowSeconds, { ...bounds, limit: 1 }));
    // Nothing waits nearly always, and then nobody's writing is held up.
    if (due.length === 0) return [];
    const claim = Bun.randomUUIDv7();
    return written(this.#db, async (tx) => {
      const found = await deliveries.all(this.#due(tx, nowSeconds, bounds));
      if (found.length === 0) return [];
      await tx`
        UPDATE notice_deliveries SET claim = ${claim}, claimed_until = ${nowSeconds + bounds.leaseSeconds}
        WHERE id IN ${tx(found.map(({ id }) => id))}`;
      return found.map((delivery) => ({ ...delivery, claim }));
    });
  }

  /** Those of which each target and owner has no more than its places. */
  #due(db: Database, nowSeconds: number, bounds: ClaimBounds) {
    const { limit, perTarget, perOwner, busyTargets, busyOwners, underWay } = bounds;
    return db`
      SELECT * FROM (
        SELECT d.*, ROW_NUMBER() OVER (PARTITION BY owner ORDER BY due_at, id) AS place_of_owner FROM (
          SELECT w.*, ROW_NUMBER() OVER (PARTITION BY target ORDER BY due_at, id) AS place_of_target
          FROM notice_deliveries w
          WHERE state = 'pending' AND due_at <= ${nowSeconds} AND claimed_until <= ${nowSeconds}
            ${underWay.length === 0 ? db`` : db`AND id NOT IN ${db(underWay)}`}
            ${busyTargets.length === 0 ? db`` : db`AND target NOT IN ${db(busyTargets)}`}
            ${busyOwners.length === 0 ? db`` : db`AND owner NOT IN ${db(busyOwners)}`}
        ) d WHERE place_of_target <= ${perTarget}
      ) o WHERE place_of_owner <= ${perOwner}
      ORDER BY due_at, id LIMIT ${limit}`;
  }

  async tried({ id, claim, tries }: ClaimedDelivery, { state, lastTry, dueAt }: TriedDelivery): Promise<void> {
    const text = JSON.stringify([...tries, lastTry]);
    const endedAt = state === "pending" ? null : lastTry.at;
    await added(
      this.#db,
      (tx) => tx`
        UPDATE notice_deliveries
        SET state = ${state}, tries = ${text}, due_at = ${dueAt}, ended_at = ${endedAt}, claim = NULL, claimed_until = 0
        WHERE id = ${id} AND claim = ${claim} AND state = 'pending'`,
    );
  }

  list(webhookId: string, { after, limit }: { after: string | undefined; limit: number }): Promise<ListedDelivery[]> {
    const db = this.#db;
    return available(
      listed.all(db`
        SELECT d.*, n.type FROM notice_deliveries d JOIN notices n ON n.id = d.notice_id
        WHERE d.target = ${webhookId} ${after === undefined ? db`` : db`AND d.id < ${after}`}
        ORDER BY d.id DESC LIMIT ${limit}`),
    );
  }
}
