// The receivers of exported records, and the cursor of each.
import {
  type ExportBatch,
  type ExportedKind,
  type ExportedRecord,
  type ExportSinkState,
  type ExportStore,
  exportedKinds,
} from "../../../domain/exports.ts";
import type { UsageRecord } from "../../../domain/usage/usage.ts";
import { type Database, databaseSeconds } from "../../sql/database.ts";
import { available, written } from "../../sql/outage.ts";
import { SqlAuditLog } from "../audit-log.ts";
import { type RecordRow, recordOf } from "../record-row.ts";

/** Rows of one query, because SQLite blocks the thread that serves requests. */
const rowsAtOnce = 100;
/** Records are numbered in steps of this size, because SQLite blocks the thread that serves requests. */
const numberedAtOnce = 250;
/** Maximum records that one batch deletes, because SQLite blocks the thread that serves requests. */
const deletedAtOnce = 5_000;
/** Records without a number are counted only up to this number. */
const maxCounted = 10_000;
const maxErrorLength = 300;
/** Seconds for which a receiver counts as configured at another process, after that process last said so. */
const wantedSeconds = 120;
/** Seconds after which a receiver that no process exports to is forgotten, with the records that it lacks. */
const forgottenSeconds = 7 * 86_400;

interface Queued {
  record_id: string;
  kind: ExportedKind;
  seq: number | string;
}

interface SinkRow {
  name: string;
  sent_seq: number | string;
  batch_end: number | string | null;
  sent_at: number | string | null;
  seen_at: number | string;
  failing_since: number | string | null;
  error: string | null;
  waiting: number | string;
  lag: number | string | null;
}

export class SqlExportStore implements ExportStore {
  readonly #db: Database;
  readonly #audit: SqlAuditLog;

  constructor(db: Database) {
    this.#db = db;
    this.#audit = new SqlAuditLog(db);
  }

  register(
    names: readonly string[],
    { kinds, maxAuditLag }: { kinds: readonly ExportedKind[]; maxAuditLag: number | null },
  ): Promise<void> {
    return written(this.#db, async (tx) => {
      const [audit, requests] = exportedKinds.map((kind) => Number(kinds.includes(kind)));
      await tx`INSERT INTO export_lease (id, seq, held_until) VALUES (1, 0, 0) ON CONFLICT (id) DO NOTHING`;
      for (const name of names) {
        await tx`
          INSERT INTO export_sinks (name, audit, requests, sent_seq, seen_at, max_audit_lag)
          SELECT ${name}, ${audit}, ${requests}, seq, ${databaseSeconds(tx)}, ${maxAuditLag} FROM export_lease WHERE id = 1
          ON CONFLICT (name) DO UPDATE
          SET audit = excluded.audit, requests = excluded.requests, seen_at = excluded.seen_at,
            max_audit_lag = excluded.max_audit_lag`;
      }
    });
  }

  hold(
    holder: string,
    sinks: readonly string[],
    { seconds, isAlone, maxAuditLag }: Parameters<ExportStore["hold"]>[2],
  ): Promise<boolean> {
    return written(this.#db, async (tx) => {
      // While replicas get a new configuration, a replica with the old file leaves the lease to replicas that know all
      // receivers.
      const isFree = isAlone
        ? tx`1 = 1`
        : tx`(holder = ${holder} OR held_until <= ${databaseSeconds(tx)}) AND NOT EXISTS (
            SELECT 1 FROM export_sinks
            WHERE name NOT IN ${tx([...sinks])} AND seen_at > ${databaseSeconds(tx)} - ${wantedSeconds})`;
      const held: unknown[] = await tx`
        UPDATE export_lease SET holder = ${holder}, held_until = ${databaseSeconds(tx)} + ${seconds}
        WHERE id = 1 AND ${isFree} RETURNING id`;
      if (held.length === 0) return false;
      await tx`
        UPDATE export_sinks SET seen_at = ${databaseSeconds(tx)}, max_audit_lag = ${maxAuditLag}
        WHERE name IN ${tx([...sinks])}`;
      return true;
    });
  }

  async unrequire(sink: string): Promise<void> {
    await written(this.#db, (tx) => tx`UPDATE export_sinks SET max_audit_lag = NULL WHERE name = ${sink}`);
  }

  async release(holder: string): Promise<void> {
    await written(this.#db, (tx) => tx`UPDATE export_lease SET held_until = 0 WHERE id = 1 AND holder = ${holder}`);
  }

  async next(holder: string, sink: string, limit: number): Promise<ExportBatch | undefined> {
    for (let numbered = 0; numbered < limit; numbered += numberedAtOnce) {
      if (!(await written(this.#db, (tx) => numberRecords(tx, holder)))) break;
    }
    const found = await written(this.#db, async (tx) => {
      if (!(await isHolder(tx, holder))) return undefined;
      const [row]: Pick<SinkRow, "sent_seq" | "batch_end">[] = await tx`
        SELECT sent_seq, batch_end FROM export_sinks WHERE name = ${sink}`;
      if (!row) return undefined;
      const sentSeq = Number(row.sent_seq);
      if (row.batch_end !== null) return { sentSeq, end: Number(row.batch_end) };
      const [last]: { end: number | string | null }[] = await tx`
        SELECT max(seq) AS "end" FROM (
          SELECT seq FROM export_queue WHERE seq > ${sentSeq} ORDER BY seq LIMIT ${limit}) AS waiting`;
      if (last?.end == null) return undefined;
      const end = Number(last.end);
      // Stored before it is sent, so that a repetition after a crash has the same records.
      await tx`UPDATE export_sinks SET batch_end = ${end} WHERE name = ${sink}`;
      return { sentSeq, end };
    });
    if (!found) return undefined;
    const queued: Queued[] = await available(this.#db`
      SELECT record_id, kind, seq FROM export_queue WHERE seq > ${found.sentSeq} AND seq <= ${found.end} ORDER BY seq`);
    return { end: found.end, records: await this.#records(queued) };
  }

  sent(holder: string, sink: string, end: number): Promise<boolean> {
    return written(this.#db, async (tx) => {
      if (!(await isHolder(tx, holder))) return false;
      const moved: unknown[] = await tx`
        UPDATE export_sinks SET sent_seq = ${end}, batch_end = NULL, sent_at = ${databaseSeconds(tx)},
          failing_since = NULL, error = NULL
        WHERE name = ${sink} AND batch_end = ${end} RETURNING name`;
      // A forgotten receiver may have lacked millions of records, so each batch deletes only some of them.
      await tx`
        DELETE FROM export_queue WHERE record_id IN (
          SELECT record_id FROM export_queue WHERE seq <= (SELECT min(sent_seq) FROM export_sinks)
          ORDER BY seq LIMIT ${deletedAtOnce})`;
      return moved.length > 0;
    });
  }

  async failed(holder: string, sink: string, error: string): Promise<void> {
    await written(this.#db, async (tx) => {
      if (!(await isHolder(tx, holder))) return;
      await tx`
        UPDATE export_sinks SET error = ${error.slice(0, maxErrorLength)},
          failing_since = coalesce(failing_since, ${databaseSeconds(tx)})
        WHERE name = ${sink}`;
    });
  }

  async states(): Promise<ExportSinkState[]> {
    const db = this.#db;
    const rows: SinkRow[] = await available(db`
      SELECT export_sinks.*,
        (SELECT seq FROM export_lease WHERE id = 1) - sent_seq +
          (SELECT count(*) FROM (SELECT 1 FROM export_queue WHERE seq IS NULL LIMIT ${maxCounted}) AS found) AS waiting,
        (SELECT ${databaseSeconds(db)} - min(queued_at) FROM (
          SELECT * FROM (SELECT queued_at FROM export_queue WHERE seq > sent_seq ORDER BY seq LIMIT 1) AS numbered
          UNION ALL
          SELECT * FROM (
            SELECT queued_at FROM export_queue WHERE seq IS NULL AND record_id < 'req_' ORDER BY record_id LIMIT 1
          ) AS events
          UNION ALL
          SELECT * FROM (
            SELECT queued_at FROM export_queue WHERE seq IS NULL AND record_id >= 'req_' ORDER BY record_id LIMIT 1
          ) AS requests
        ) AS oldest) AS lag
      FROM export_sinks ORDER BY name`);
    return rows.map((row) => ({
      name: row.name,
      sentSeq: Number(row.sent_seq),
      sentAt: numberOrNull(row.sent_at),
      seenAt: Number(row.seen_at),
      failingSince: numberOrNull(row.failing_since),
      error: row.error,
      waiting: Number(row.waiting),
      lagSeconds: Math.max(0, Number(row.lag ?? 0)),
    }));
  }

  /**
   * Forgets receivers that left the configuration, so that no records wait for them. Returns the number of deleted
   * rows.
   */
  deleteExpired(nowSeconds: number, limit: number): Promise<number> {
    return written(this.#db, async (tx) => {
      await tx`DELETE FROM export_sinks WHERE seen_at < ${nowSeconds - forgottenSeconds}`;
      const deleted: unknown[] = await tx`
        DELETE FROM export_queue WHERE record_id IN (SELECT record_id FROM export_queue LIMIT ${limit})
          AND NOT EXISTS (SELECT 1 FROM export_sinks) RETURNING seq`;
      return deleted.length;
    });
  }

  async #records(queued: readonly Queued[]): Promise<ExportedRecord[]> {
    const found: ExportedRecord[] = [];
    for (let start = 0; start < queued.length; start += rowsAtOnce) {
      const some = queued.slice(start, start + rowsAtOnce);
      const idsOf = (kind: ExportedKind) => some.filter((one) => one.kind === kind).map((one) => one.record_id);
      const [events, requests] = [await this.#audit.find(idsOf("audit")), await this.#requests(idsOf("requests"))];
      const [eventsById, requestsById] = [
        new Map(events.map((event) => [event.id, event])),
        new Map(requests.map((request) => [request.requestId, request])),
      ];
      for (const { record_id: id, kind, seq } of some) {
        const place = { seq: Number(seq), id };
        if (kind === "audit") found.push({ ...place, kind, record: eventsById.get(id) ?? null });
        else found.push({ ...place, kind, record: requestsById.get(id) ?? null });
      }
      await new Promise(setImmediate);
    }
    return found;
  }

  async #requests(ids: readonly string[]): Promise<UsageRecord[]> {
    if (ids.length === 0) return [];
    const rows: RecordRow[] = await available(
      this.#db`SELECT * FROM usage_records WHERE request_id IN ${this.#db([...ids])}`,
    );
    return rows.map(recordOf);
  }
}

async function isHolder(tx: Database, holder: string): Promise<boolean> {
  const held: unknown[] = await tx`SELECT id FROM export_lease WHERE id = 1 AND holder = ${holder}`;
  return held.length > 0;
}

/**
 * Gives new records their numbers: without gaps, and in the order of their ids, audit events first. Records that
 * another transaction commits later get higher numbers, so no cursor passes over them. Returns whether more may wait.
 */
async function numberRecords(tx: Database, holder: string): Promise<boolean> {
  if (!(await isHolder(tx, holder))) return false;
  const numbered: unknown[] = await tx`
    UPDATE export_queue SET seq = numbers.seq FROM (
      SELECT record_id, (SELECT seq FROM export_lease WHERE id = 1) + row_number() OVER (ORDER BY record_id) AS seq
      FROM (SELECT record_id FROM export_queue WHERE seq IS NULL ORDER BY record_id LIMIT ${numberedAtOnce}) AS unnumbered
    ) AS numbers
    WHERE export_queue.record_id = numbers.record_id RETURNING export_queue.seq`;
  if (numbered.length > 0) await tx`UPDATE export_lease SET seq = seq + ${numbered.length} WHERE id = 1`;
  return numbered.length === numberedAtOnce;
}

function numberOrNull(value: number | string | null): number | null {
  return value === null ? null : Number(value);
}
