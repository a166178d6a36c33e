// The queue of deliveries in the database: a claimed delivery is exclusive until its result or the end of its lease.
import type {
  ClaimBounds,
  ClaimedDelivery,
  DeliveryStore,
  ListedDelivery,
  QueueLength,
  TriedDelivery,
} from "../../../domain/notifications/webhook.ts";
import type { Database } from "../../sql/database.ts";
import { added, available } from "../../sql/outage.ts";
import { table, text } from "../../sql/table.ts";
import { deliveries } from "./notification-rows.ts";

type Taken = ClaimBounds["underWay"][number];

const listed = table<ListedDelivery>({ ...deliveries.columns, type: text });

/** Maximum number of targets for one statement. */
const targetsAtOnce = 64;
/** Waiting deliveries are counted only up to this number. */
const maxCounted = 10_000;

interface Step {
  /** null if no further target exists. */
  target: string | null;
  id: string | null;
  owner: string | null;
}

/** The free slots for delivery attempts, and the deliveries that took one. */
class DeliverySlots {
  /** Ids of deliveries that got a slot. */
  readonly taken: string[] = [];
  /** The ids in `taken`, and those of running attempts. */
  readonly ids: string[] = [];
  readonly #bounds: ClaimBounds;
  readonly #ofTargets = new Map<string, number>();
  readonly #ofOwners = new Map<string, number>();

  constructor(bounds: ClaimBounds) {
    this.#bounds = bounds;
    for (const one of bounds.underWay) this.#count(one);
  }

  get isFull(): boolean {
    return this.taken.length >= this.#bounds.limit;
  }

  /** Takes a slot for a delivery. Returns false if the delivery has to wait for one. */
  take(one: Taken): boolean {
    const { perTarget, perOwner } = this.#bounds;
    if (this.isFull || (this.#ofTargets.get(one.target) ?? 0) >= perTarget) return false;
    if ((this.#ofOwners.get(one.owner) ?? 0) >= perOwner) return false;
    this.#count(one);
    this.taken.push(one.id);
    return true;
  }

  #count({ id, target, owner }: Taken): void {
    this.ids.push(id);
    this.#ofTargets.set(target, (this.#ofTargets.get(target) ?? 0) + 1);
    this.#ofOwners.set(owner, (this.#ofOwners.get(owner) ?? 0) + 1);
  }
}

export class SqlDeliveryStore implements DeliveryStore {
  readonly #db: Database;
  /** The target that got a slot last. */
  #after = "";

  constructor(db: Database) {
    this.#db = db;
  }

  async claim(nowSeconds: number, bounds: ClaimBounds): Promise<ClaimedDelivery[]> {
    // The queue is usually empty. Reading first means that no writer is blocked then.
    if ((await this.#oldestDueAt(nowSeconds)) === undefined) return [];
    const ids = await this.#find(nowSeconds, bounds);
    if (ids.length === 0) return [];
    const claim = Bun.randomUUIDv7();
    const taken = await added(this.#db, (tx) =>
      deliveries.all(tx`
        UPDATE notice_deliveries SET claim = ${claim}, claimed_until = ${nowSeconds + bounds.leaseSeconds}
        WHERE id IN ${tx(ids)} AND state = 'pending' AND claimed_until <= ${nowSeconds}
        RETURNING *`),
    );
    return taken.map((delivery) => ({ ...delivery, claim }));
  }

  async length(nowSeconds: number): Promise<QueueLength> {
    const oldest = await this.#oldestDueAt(nowSeconds);
    const [row]: { waiting: number | string }[] = await available(this.#db`
      SELECT count(*) AS waiting FROM (
        SELECT 1 FROM notice_deliveries WHERE state = 'pending' LIMIT ${maxCounted}
      ) AS found`);
    return { waiting: Number(row?.waiting), overdueSeconds: oldest === undefined ? 0 : nowSeconds - oldest };
  }

  async #oldestDueAt(nowSeconds: number): Promise<number | undefined> {
    const [row]: { due_at: number | string }[] = await available(this.#db`
      SELECT due_at FROM notice_deliveries
      WHERE state = 'pending' AND due_at <= ${nowSeconds} AND claimed_until <= ${nowSeconds}
      ORDER BY due_at LIMIT 1`);
    return row && Number(row.due_at);
  }

  /**
   * Iterates over the targets after the last served one, so that a busy or hanging target delays no other, at a
   * constant cost.
   */
  async #find(nowSeconds: number, bounds: ClaimBounds): Promise<string[]> {
    const { limit, perTarget } = bounds;
    const slots = new DeliverySlots(bounds);
    for (let nth = 0; nth < perTarget && slots.taken.length < limit; nth++) {
      const before = slots.taken.length;
      const start = this.#after;
      await this.#walk(nowSeconds, { from: start, to: undefined }, slots);
      if (start !== "") await this.#walk(nowSeconds, { from: "", to: start }, slots);
      if (slots.taken.length === before) break;
    }
    return slots.taken;
  }

  async #walk(nowSeconds: number, { from, to }: { from: string; to: string | undefined }, slots: DeliverySlots) {
    for (let after = from; ; ) {
      const steps = await this.#step(nowSeconds, after, slots.ids);
      for (const { target, id, owner } of steps) {
        if (target === null || (to !== undefined && target > to)) return;
        if (id === null || owner === null || !slots.take({ id, target, owner })) continue;
        this.#after = target;
        if (slots.isFull) return;
      }
      after = steps.at(-1)?.target ?? "";
      if (steps.length < targetsAtOnce) return;
      // SQLite blocks the thread that serves requests, so requests run between two steps.
      await new Promise(setImmediate);
    }
  }

  /**
   * Returns the next targets with waiting deliveries, and for each target its oldest due delivery that is not among
   * `ids`. Each takes one index lookup.
   */
  #step(nowSeconds: number, after: string, ids: readonly string[]): Promise<Step[]> {
    const db = this.#db;
    return available(db`
      WITH RECURSIVE walk (target, place) AS (
        SELECT min(target), 1 FROM notice_deliveries WHERE state = 'pending' AND target > ${after}
        UNION ALL
        SELECT (SELECT min(target) FROM notice_deliveries n WHERE state = 'pending' AND n.target > walk.target), place + 1
        FROM walk WHERE walk.target IS NOT NULL AND place < ${targetsAtOnce}
      ), due (target, place, id) AS (
        SELECT target, place, (
          SELECT id FROM notice_deliveries d
          WHERE d.state = 'pending' AND d.target = walk.target AND d.due_at <= ${nowSeconds}
            AND d.claimed_until <= ${nowSeconds} ${ids.length === 0 ? db`` : db`AND d.id NOT IN ${db([...ids])}`}
          ORDER BY due_at LIMIT 1
        ) FROM walk
      )
      SELECT due.target, due.id, (SELECT owner FROM notice_deliveries o WHERE o.id = due.id) AS owner
      FROM due ORDER BY place`);
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
