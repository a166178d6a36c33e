// The audit log in the database: added to and read, never changed.
import type { AuditAction, AuditActor, AuditEvent, AuditFilter, AuditLog } from "../domain/audit.ts";
import type { Database } from "./database.ts";
import { available } from "./outage.ts";

interface AuditRow {
  id: string;
  at: number | string;
  action: string;
  actor_type: string;
  actor_id: string | null;
  account_id: string | null;
  target_id: string | null;
  client_address: string | null;
  request_id: string | null;
  detail: string;
}

/** Rows of one statement, well below the number of parameters that either database takes. */
const maxBatch = 500;

export class SqlAuditLog implements AuditLog {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** All of them or none. What is already there is left as it is, so that a failed batch can be tried again. */
  async append(events: readonly AuditEvent[]): Promise<void> {
    if (events.length === 0) return;
    const write = this.#db.begin("IMMEDIATE", async (tx) => {
      for (let start = 0; start < events.length; start += maxBatch) {
        const rows = events.slice(start, start + maxBatch).map(toRow);
        await tx`INSERT INTO audit_log ${tx(rows)} ON CONFLICT (id) DO NOTHING`;
      }
    });
    await available(write);
  }

  async list(filter: AuditFilter, page: { after: string | undefined; limit: number }): Promise<AuditEvent[]> {
    const db = this.#db;
    const { accountId, action, targetId, start, end } = filter;
    const rows: AuditRow[] = await available(db`
      SELECT * FROM audit_log WHERE id <> ''
      ${accountId === undefined ? db`` : db`AND account_id = ${accountId}`}
      ${action === undefined ? db`` : db`AND action = ${action}`}
      ${targetId === undefined ? db`` : db`AND target_id = ${targetId}`}
      ${start === undefined ? db`` : db`AND at >= ${start}`}
      ${end === undefined ? db`` : db`AND at < ${end}`}
      ${page.after === undefined ? db`` : db`AND id < ${page.after}`}
      ORDER BY id DESC LIMIT ${page.limit}`);
    return rows.map(fromRow);
  }
}

/** In the transaction of what it tells of. */
export async function insertAuditEvent(tx: Database, event: AuditEvent): Promise<void> {
  await tx`INSERT INTO audit_log ${tx(toRow(event))}`;
}

function toRow(event: AuditEvent): AuditRow {
  return {
    id: event.id,
    at: event.at,
    action: event.action,
    actor_type: event.actor.type,
    actor_id: "id" in event.actor ? event.actor.id : null,
    account_id: event.accountId,
    target_id: event.targetId,
    client_address: event.clientAddress,
    request_id: event.requestId,
    detail: JSON.stringify(event.detail),
  };
}

function fromRow(row: AuditRow): AuditEvent {
  return {
    id: row.id,
    at: Number(row.at),
    action: row.action as AuditAction,
    actor: { type: row.actor_type, ...(row.actor_id === null ? {} : { id: row.actor_id }) } as AuditActor,
    accountId: row.account_id,
    targetId: row.target_id,
    clientAddress: row.client_address,
    requestId: row.request_id,
    detail: JSON.parse(row.detail) as Record<string, unknown>,
  };
}
