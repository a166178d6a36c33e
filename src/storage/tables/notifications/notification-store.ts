// Notifications in the database, written with their deliveries in one transaction.
import {
  type Notification,
  type NotificationReceivers,
  type NotificationStore,
  notificationTypes,
} from "../../../domain/notifications/notification.ts";
import { ownerOf } from "../../../domain/notifications/webhook.ts";
import type { Database } from "../../sql/database.ts";
import { available, written } from "../../sql/outage.ts";
import { deliveries, notices, type QueuedDelivery, webhooks } from "./notification-rows.ts";

const daySeconds = 86_400;
const deliveriesKeptSeconds = 30 * daySeconds;
/**
 * Seconds to keep notifications: longer than any window in which an event is sent once. A condition that lasts longer
 * is reported again.
 */
const keptNotificationSeconds = 100 * daySeconds;
/** Maximum waiting deliveries for one webhook. While a webhook is down, further deliveries are not made. */
const maxWaiting = 10_000;
/** Seconds for which the number of waiting deliveries is cached, because counting many takes time. */
const countedSeconds = 10;
const maxCounted = 1_000;
/** Maximum mails to one person in an hour. */
const maxMailsPerHour = 30;
const hourSeconds = 3_600;

/** The receiver of a notification. */
type Target = Pick<QueuedDelivery, "webhookId" | "personId" | "target">;

export class SqlNotificationStore implements NotificationStore {
  readonly #db: Database;
  /** Recent numbers of waiting deliveries by target. */
  readonly #waiting = new Map<string, { count: number; at: number }>();

  constructor(db: Database) {
    this.#db = db;
  }

  async add(notice: Notification, receivers: NotificationReceivers): Promise<number | undefined> {
    // Most events are known already. A read finds them without waiting for other writers.
    const known: unknown[] = await available(this.#db`SELECT id FROM notices WHERE once = ${notice.once}`);
    if (known.length > 0) return undefined;
    return written(this.#db, async (tx) => {
      const added: unknown[] = await tx`
        INSERT INTO notices ${tx(notices.row(notice))} ON CONFLICT (once) DO NOTHING RETURNING id`;
      if (added.length === 0) return undefined;
      const targets = [
        ...(await this.#webhooksFor(tx, notice, receivers)),
        ...(await peopleFor(tx, notice, receivers)),
      ];
      const rows = targets.map((target) => deliveries.row(deliveryOf(notice, target)));
      if (rows.length > 0) await tx`INSERT INTO notice_deliveries ${tx(rows)}`;
      return rows.length;
    });
  }

  async find(id: string): Promise<Notification | undefined> {
    const found = await available(notices.first(this.#db`SELECT * FROM notices WHERE id = ${id}`));
    // This version does not know a type that a later version stored.
    return found && notificationTypes.includes(found.type) ? (found as Notification) : undefined;
  }

  async deleteExpired(nowSeconds: number, limit: number): Promise<number> {
    return written(this.#db, async (tx) => {
      const delivered: unknown[] = await tx`
        DELETE FROM notice_deliveries WHERE id IN (
          SELECT id FROM notice_deliveries WHERE created_at < ${nowSeconds - deliveriesKeptSeconds}
          ORDER BY created_at LIMIT ${limit})
        RETURNING id`;
      const deleted: unknown[] = await tx`
        DELETE FROM notices WHERE id IN (
          SELECT id FROM notices WHERE at < ${nowSeconds - keptNotificationSeconds} ORDER BY at LIMIT ${limit})
        RETURNING id`;
      return Math.max(delivered.length, deleted.length);
    });
  }

  async #webhooksFor(tx: Database, notice: Notification, receivers: NotificationReceivers): Promise<Target[]> {
    const targets: Target[] = [];
    for (const id of await webhookIdsFor(tx, notice, receivers)) {
      const waiting = await this.#waitingFor(tx, id, notice.at);
      if (waiting.count >= maxWaiting) continue;
      waiting.count++;
      targets.push({ webhookId: id, personId: null, target: id });
    }
    return targets;
  }

  async #waitingFor(tx: Database, target: string, now: number): Promise<{ count: number; at: number }> {
    const known = this.#waiting.get(target);
    if (known && Math.abs(now - known.at) < countedSeconds) return known;
    const [row]: { n: number | string }[] = await tx`
      SELECT count(*) AS n FROM (
        SELECT 1 FROM notice_deliveries WHERE target = ${target} AND state = 'pending' LIMIT ${maxWaiting}
      ) AS found`;
    const counted = { count: Number(row?.n), at: now };
    if (this.#waiting.size >= maxCounted) this.#waiting.clear();
    this.#waiting.set(target, counted);
    return counted;
  }
}

function deliveryOf(notice: Notification, target: Target): QueuedDelivery {
  return {
    ...target,
    id: `dlv_${Bun.randomUUIDv7()}`,
    noticeId: notice.id,
    owner: ownerOf(notice.accountId),
    state: "pending",
    tries: [],
    createdAt: notice.at,
    dueAt: notice.at,
    endedAt: null,
    claim: null,
    claimedUntil: 0,
  };
}

async function webhookIdsFor(
  tx: Database,
  notice: Notification,
  { webhookId }: NotificationReceivers,
): Promise<string[]> {
  const { accountId, environment, type } = notice;
  const found = await webhooks.all(
    webhookId === undefined
      ? tx`
        SELECT * FROM webhooks WHERE is_enabled = 1
          AND ${accountId === null ? tx`account_id IS NULL` : tx`account_id = ${accountId}`}
          ${environment === null ? tx`` : tx`AND (environment IS NULL OR environment = ${environment})`}`
      : tx`SELECT * FROM webhooks WHERE id = ${webhookId}`,
  );
  const isWanted = ({ events }: (typeof found)[number]) =>
    webhookId !== undefined || events.length === 0 || events.includes(type);
  return found.filter(isWanted).map(({ id }) => id);
}

/**
 * Returns the people who get the notification by mail: the owners and admins of the account, or the operators, or the
 * person who requested the limit. People who turned mail off, or got too many mails, are left out.
 */
async function peopleFor(
  tx: Database,
  { accountId, at, type, data }: Notification,
  { mails, webhookId }: NotificationReceivers,
): Promise<Target[]> {
  if (!mails || webhookId !== undefined) return [];
  const since = at - hourSeconds;
  const rows: { id: string }[] = await tx`
    SELECT p.id FROM people p
    WHERE ${
      type === "limit.decided"
        ? tx`p.id = ${data.person_id}`
        : accountId === null
          ? tx`p.is_operator = 1`
          : tx`p.id IN (SELECT person_id FROM memberships WHERE account_id = ${accountId} AND role IN ('owner', 'admin'))`
    }
      AND p.id NOT IN (SELECT person_id FROM notice_mutes)
      AND coalesce((SELECT d.created_at FROM notice_deliveries d WHERE d.target = p.id
        ORDER BY d.id DESC LIMIT 1 OFFSET ${maxMailsPerHour - 1}), 0) <= ${since}
    ORDER BY p.id`;
  return rows.map(({ id }) => ({ webhookId: null, personId: id, target: id }));
}
