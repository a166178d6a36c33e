// Deletes records after their retention, a few at a time. Remembers the time limit, so that older records are never
// added again.
import type { AuditEvent } from "../../domain/audit.ts";
import type {
  KeptFrom,
  PurgeCursor,
  RetainedKind,
  RetentionStore,
  SeenTimes,
  SeenTimesStore,
} from "../../domain/usage/retention.ts";
import { type Database, dialectOf } from "../sql/database.ts";
import { addInstallation, putInstallation, readInstallation } from "../sql/installation.ts";
import { added, available, written } from "../sql/outage.ts";
import { insertAuditEvent } from "./audit-log.ts";

const names = {
  requests: "requests_kept_from",
  hourly_usage: "hourly_usage_kept_from",
  refusals: "refusals_kept_from",
  refused_requests: "refused_requests_kept_from",
  audit: "audit_kept_from",
} as const satisfies Record<RetainedKind, string>;

const defaultsName = "retention_defaults_from";
/** Name in the table `installation` of the seen times, stored as `trusted`, or as `trusted from seen`. */
const seenName = "retention_seen_times";

/**
 * Name in the table `installation` of the time from which requests are kept. Earlier usage was counted and then
 * deleted.
 */
export const requestsKeptFrom = names.requests;
/** Name in the table `installation` of the time from which hourly roll-ups are kept. */
export const hourlyUsageKeptFrom = names.hourly_usage;

/**
 * Number of the PostgreSQL advisory lock that writers of usage share, so that no usage from before the deletion limit
 * is added.
 */
export const usageAgeLock = 0x6865_6105;

interface OwnedTable {
  name: "usage_rollups" | "usage_tag_rollups" | "usage_totals" | "refusals";
  /** Columns of the primary key after account and environment. */
  key: string;
  only: string;
}

const rollupKey = "span, start, key_id, app_id, model";
const owned = {
  hourly_usage: [
    { name: "usage_rollups", key: rollupKey, only: "span = 'hour' AND " },
    { name: "usage_tag_rollups", key: `tag, ${rollupKey}`, only: "span = 'hour' AND " },
    {
      name: "usage_totals",
      key: "span, kind, start, name, model",
      // With all kinds listed, both databases find the times by the primary key.
      only: "span = 'hour' AND kind IN ('account', 'all', 'deployment', 'model', 'outcome', 'upstream') AND ",
    },
  ],
  refusals: [{ name: "refusals", key: "start, key_id, app_id, model, reason", only: "" }],
} as const satisfies Partial<Record<RetainedKind, readonly [OwnedTable, ...OwnedTable[]]>>;

/** The other kinds of records: their table, with the time column `at`, and its primary key. */
const byTime: Readonly<Record<Exclude<RetainedKind, keyof typeof owned>, readonly [table: string, key: string]>> = {
  requests: ["usage_records", "request_id"],
  audit: ["audit_log", "id"],
  refused_requests: ["refused_requests", "request_id"],
};

/** Returns a text that sorts in the order of the primary keys, because ids have no control characters. */
function nameOf({ accountId, environment }: PurgeCursor): string {
  return `${accountId}\n${environment}`;
}

function isOwned(kind: RetainedKind): kind is keyof typeof owned {
  return Object.hasOwn(owned, kind);
}

export class SqlRetentionStore implements RetentionStore, SeenTimesStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async keptFrom(): Promise<KeptFrom> {
    const rows: { name: string; value: string }[] = await available(this.#db`
      SELECT name, value FROM installation WHERE name IN ${this.#db(Object.values(names))}`);
    const kept: Partial<Record<RetainedKind, number>> = {};
    for (const [kind, name] of Object.entries(names)) {
      const row = rows.find((one) => one.name === name);
      if (row) kept[kind as RetainedKind] = Number(row.value);
    }
    return kept;
  }

  keepFrom(kind: RetainedKind, from: number, event: AuditEvent | undefined): Promise<boolean> {
    return written(this.#db, async (tx) => {
      if (kind === "requests" && dialectOf(tx) === "postgres") await tx`SELECT pg_advisory_xact_lock(${usageAgeLock})`;
      const moved: unknown[] = await tx`
        INSERT INTO installation ${tx({ name: names[kind], value: String(from) })}
        ON CONFLICT (name) DO UPDATE SET value = excluded.value
        WHERE CAST(installation.value AS BIGINT) < CAST(excluded.value AS BIGINT)
        RETURNING name`;
      if (moved.length > 0 && event) await insertAuditEvent(tx, event);
      return moved.length > 0;
    });
  }

  async hasOlder(kind: "requests" | "refusals", than: number): Promise<boolean> {
    const db = this.#db;
    const found: unknown[] = await available(
      kind === "requests"
        ? db`SELECT at FROM usage_records WHERE at < ${than} LIMIT 1`
        : db`SELECT start FROM refusals WHERE start < ${than} LIMIT 1`,
    );
    return found.length > 0;
  }

  purge(
    kind: RetainedKind,
    before: number,
    { cursor, limit }: { cursor: PurgeCursor | undefined; limit: number },
  ): ReturnType<RetentionStore["purge"]> {
    if (isOwned(kind)) return this.#purgeOwned(owned[kind], before, cursor, limit);
    return this.#purgeByTime(byTime[kind], before, limit);
  }

  async defaultsFrom(): Promise<number | undefined> {
    const from = await available(readInstallation(this.#db, defaultsName));
    return from === undefined ? undefined : Number(from);
  }

  async beginDefaults(from: number): Promise<number> {
    await added(this.#db, (tx) => addInstallation(tx, defaultsName, String(from)));
    return (await this.defaultsFrom()) ?? from;
  }

  async seenTimes(): Promise<SeenTimes | undefined> {
    const times = await available(readInstallation(this.#db, seenName));
    const [trusted, from, seen] = times?.split(" ").map(Number) ?? [];
    if (trusted === undefined) return undefined;
    return { trusted, doubted: from === undefined || seen === undefined ? undefined : { from, seen } };
  }

  async saveSeenTimes({ trusted, doubted }: SeenTimes): Promise<void> {
    const value = [trusted, ...(doubted ? [doubted.from, doubted.seen] : [])].join(" ");
    await written(this.#db, (tx) => putInstallation(tx, seenName, value));
  }

  /** Deletes the oldest rows, which the index of times finds. */
  async #purgeByTime([table, key]: (typeof byTime)["requests"], before: number, limit: number) {
    const deleted = await this.#delete(
      (tx) => tx`
        DELETE FROM ${tx.unsafe(table)} WHERE ${tx.unsafe(key)} IN (
          SELECT ${tx.unsafe(key)} FROM ${tx.unsafe(table)} WHERE at < ${before} ORDER BY at LIMIT ${limit})
        RETURNING at`,
    );
    return { deleted, next: deleted < limit ? null : undefined };
  }

  /** Deletes by account and environment, because the primary key begins with them and no index begins with the time. */
  async #purgeOwned(
    tables: readonly [OwnedTable, ...OwnedTable[]],
    before: number,
    cursor: PurgeCursor | undefined,
    limit: number,
  ) {
    const owner = cursor ?? (await this.#ownerAfter(tables, { accountId: "", environment: "" }));
    if (!owner) return { deleted: 0, next: null };
    let deleted = 0;
    for (const table of tables) {
      if (deleted < limit) deleted += await this.#deleteOwned(table, owner, before, limit - deleted);
    }
    return { deleted, next: deleted < limit ? ((await this.#ownerAfter(tables, owner)) ?? null) : owner };
  }

  #deleteOwned({ name, key, only }: OwnedTable, owner: PurgeCursor, before: number, limit: number): Promise<number> {
    const db = this.#db;
    const columns = db.unsafe(`account_id, environment, ${key}`);
    return this.#delete(
      (tx) => tx`
        DELETE FROM ${tx.unsafe(name)} WHERE (${columns}) IN (
          SELECT ${columns} FROM ${tx.unsafe(name)}
          WHERE account_id = ${owner.accountId} AND environment = ${owner.environment} AND ${tx.unsafe(only)} start < ${before}
          LIMIT ${limit})
        RETURNING start`,
    );
  }

  async #ownerAfter(
    tables: readonly OwnedTable[],
    { accountId, environment }: PurgeCursor,
  ): Promise<PurgeCursor | undefined> {
    const db = this.#db;
    let next: PurgeCursor | undefined;
    for (const { name } of tables) {
      const [row]: { account_id: string; environment: string }[] = await available(db`
        SELECT account_id, environment FROM ${db.unsafe(name)}
        WHERE (account_id, environment) > (${accountId}, ${environment}) ORDER BY account_id, environment LIMIT 1`);
      const found = row && { accountId: row.account_id, environment: row.environment };
      if (found && (!next || nameOf(found) < nameOf(next))) next = found;
    }
    return next;
  }

  async #delete(statement: (tx: Database) => PromiseLike<unknown[]>): Promise<number> {
    return (await written(this.#db, statement)).length;
  }
}
