// The audit log in the database: append and read only.
import type { AuditActor, AuditEvent, AuditFilter, AuditLog } from "../../domain/audit.ts";
import type { Database } from "../sql/database.ts";
import { added, available } from "../sql/outage.ts";
import { integer, json, table, text } from "../sql/table.ts";
import { queueEvents } from "./operations/export-queue.ts";

type Entry = Omit<AuditEvent, "actor" | "actorStatus"> & { actorType: AuditActor["type"]; actorId: string | null };

const entries = table<Entry>({
  id: text,
  at: integer,
  action: text,
  actorType: text,
  actorId: text,
  accountId: text,
  targetId: text,
  clientAddress: text,
  requestId: text,
  detail: json,
});

/** Maximum rows of one INSERT, well below both databases' maximum number of parameters. */
const maxBatch = 500;
/**
 * Rows of one query. SQLite blocks the thread that serves requests, so a log with few matches is read by several short
 * queries.
 */
const inspectedAtOnce = 2_000;
/** Maximum rows that one request scans for rare matches. */
const maxInspected = 20_000;

interface Page {
  after: string | undefined;
  downTo?: string | undefined;
  limit: number;
}

export class SqlAuditLog implements AuditLog {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Appends all or none. Existing rows stay unchanged, so that a failed batch can be retried. */
  async append(events: readonly AuditEvent[]): Promise<void> {
    if (events.length === 0) return;
    await added(this.#db, async (tx) => {
      for (let start = 0; start < events.length; start += maxBatch) {
        const rows = events.slice(start, start + maxBatch).map(toRow);
        const appended: { id: string }[] = await tx`
          INSERT INTO audit_log ${tx(rows)} ON CONFLICT (id) DO NOTHING RETURNING id`;
        const added = new Set(appended.map(({ id }) => id));
        await queueEvents(
          tx,
          events.filter(({ id }) => added.has(id)),
        );
      }
    });
  }

  async list(filter: AuditFilter, { after, downTo, limit }: Page): Promise<AuditEvent[]> {
    const found: Entry[] = [];
    for (let before = after; ; ) {
      const next = isSought(filter) ? await this.#idBelow(filter, before, inspectedAtOnce) : undefined;
      const isLast = next === undefined || (downTo !== undefined && next <= downTo);
      const floor = isLast ? downTo : next;
      found.push(...(await this.#read(filter, { before, floor, limit: limit - found.length })));
      if (isLast || found.length >= limit) return found.map(eventOf);
      before = next;
      await new Promise(setImmediate);
    }
  }

  /** Returns the events with these ids, in any order. */
  async find(ids: readonly string[]): Promise<AuditEvent[]> {
    if (ids.length === 0) return [];
    const found = entries.all(this.#db`SELECT * FROM audit_log WHERE id IN ${this.#db([...ids])}`);
    return (await available(found)).map(eventOf);
  }

  async lastScannedId(filter: AuditFilter, after: string | undefined): Promise<string | undefined> {
    return isSought(filter) ? await this.#idBelow(filter, after, maxInspected) : undefined;
  }

  /** Returns the id of the last of this many rows before `before`. Undefined if there are fewer rows. */
  async #idBelow(filter: AuditFilter, before: string | undefined, rows: number): Promise<string | undefined> {
    const [row]: { id: string }[] = await available(this.#db`
      SELECT id FROM audit_log WHERE ${this.#indexed(filter)} ${this.#older(before)}
      ORDER BY id DESC LIMIT 1 OFFSET ${rows - 1}`);
    return row?.id;
  }

  #read(
    filter: AuditFilter,
    { before, floor, limit }: { before: string | undefined; floor: string | undefined; limit: number },
  ): Promise<Entry[]> {
    const db = this.#db;
    const { start, end, accountId, action } = filter;
    const rows = db`
      SELECT * FROM audit_log WHERE ${this.#indexed(filter)} ${this.#older(before)}
      ${floor === undefined ? db`` : db`AND id >= ${floor}`}
      ${accountId === undefined ? db`` : db`AND account_id || '' = ${accountId}`}
      ${action === undefined ? db`` : db`AND action || '' = ${action}`}
      ${start === undefined ? db`` : db`AND at + 0 >= ${start}`}
      ${end === undefined ? db`` : db`AND at + 0 < ${end}`}
      ORDER BY id DESC LIMIT ${limit}`;
    return available(entries.all(rows));
  }

  #older(before: string | undefined) {
    return before === undefined ? this.#db`` : this.#db`AND id < ${before}`;
  }

  /**
   * Returns the condition that one index serves, in the order of ids. Other filters are expressions without an index.
   */
  #indexed({ targetId, accountId, action }: AuditFilter) {
    const db = this.#db;
    if (targetId !== undefined) return db`target_id = ${targetId}`;
    if (accountId !== undefined) return db`account_id = ${accountId}`;
    return action === undefined ? db`id <> ''` : db`action = ${action}`;
  }
}

/** Reports whether further filters apply to the rows that the index finds, so that few or none of them may match. */
function isSought({ targetId, accountId, action, start, end }: AuditFilter): boolean {
  const filters = [targetId, accountId, action].filter((one) => one !== undefined).length;
  return filters > 1 || start !== undefined || end !== undefined;
}

/** Adds an event. Call it in the transaction of the change that the event describes. */
export async function insertAuditEvent(tx: Database, event: AuditEvent): Promise<void> {
  await tx`INSERT INTO audit_log ${tx(toRow(event))}`;
  await queueEvents(tx, [event]);
}

function toRow({ actor, ...event }: AuditEvent) {
  return entries.row({ ...event, actorType: actor.type, actorId: "id" in actor ? actor.id : null });
}

function eventOf({ actorType, actorId, ...event }: Entry): AuditEvent {
  return { ...event, actor: { type: actorType, ...(actorId === null ? {} : { id: actorId }) } as AuditActor };
}
