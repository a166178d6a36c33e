// Writes usage into PostgreSQL: records and their roll-ups in one transaction. Many processes may do so at the same
// time.
import { GatewayError } from "../../base/errors.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import { adding, type Database, databaseSeconds } from "../../storage/sql/database.ts";
import { readInstallation } from "../../storage/sql/installation.ts";
import { requestsKeptFrom, usageAgeLock } from "../../storage/tables/retention-store.ts";
import { tagsText } from "../../storage/tables/tags-text.ts";
import { noTotals } from "./owner-totals.ts";
import { UsageColumns } from "./usage-columns.ts";
import { columnsOf, keptUsage, type LaterRollups, type UsageWriter } from "./usage-rows.ts";
import { type RollupRow, rollupColumns, type SumColumns, type SumRow, tagColumn, UsageSums } from "./usage-sums.ts";
import { totalsColumns, totalsOf } from "./usage-totals.ts";

/**
 * Adds each record whose id is new, and increments its roll-ups. All processes lock the roll-ups in the same order, so
 * they do not deadlock. Rows are sent as one JSON value, so that one prepared statement serves any number of rows.
 */
export class PostgresUsageWriter implements UsageWriter {
  /** No sum is delayed: PostgreSQL's roll-ups are updated at once, because other processes may read them. */
  readonly rollups: LaterRollups = {
    gathered: 0,
    moved: 0,
    isBehind: false,
    isDue: false,
    goOn: async () => {},
    totalOf: noTotals,
  };
  readonly #db: Database;
  /** Id of the installation that the usage belongs to; undefined if the database had none. */
  readonly #installation: string | undefined;
  #tooOld = 0;

  private constructor(db: Database, installation: string | undefined) {
    this.#db = db;
    this.#installation = installation;
  }

  /** `installation` is the id of the installation that the usage belongs to. Default: the id in the database. */
  static async open(db: Database, installation?: string): Promise<PostgresUsageWriter> {
    return new PostgresUsageWriter(db, installation ?? (await readInstallation(db, "id")));
  }

  get tooOld(): number {
    return this.#tooOld;
  }

  async insert(usage: UsageColumns | readonly UsageRecord[]): Promise<number> {
    const { added, tooOld } = await this.#insert(storable(columnsOf(usage)));
    this.#tooOld += tooOld;
    return added;
  }

  #insert(all: UsageColumns): Promise<{ added: number; tooOld: number }> {
    return adding(this.#db, async (tx) => {
      // Lock first: a concurrent deletion of old records then either waits, or has already stored its age limit.
      await tx`SELECT pg_advisory_xact_lock_shared(${usageAgeLock})`;
      const known: { name: string; value: string }[] = await tx`
        SELECT name, value FROM installation WHERE name IN (${requestsKeptFrom}, 'id')
        UNION ALL SELECT 'exports', name FROM export_sinks WHERE requests = 1`;
      const textOf = (name: string) => known.find((row) => row.name === name)?.value;
      // Usage must not go into another installation's database, because the spool deletes it afterwards.
      if (this.#installation !== undefined && textOf("id") !== this.#installation) throw replacedError();
      const usage = keptUsage(all, textOf(requestsKeptFrom));
      const tooOld = all.length - usage.length;
      const rows = JSON.stringify(
        usage.records().map((record, row) => toRow(record, usage.trailAt(row), usage.detailsAt(row))),
      );
      const added: { request_id: string }[] = await tx`
        INSERT INTO usage_records (${tx.unsafe(recordColumns)}) SELECT ${tx.unsafe(recordColumns)}
        FROM json_to_recordset(CAST(CAST(${rows} AS TEXT) AS JSON)) AS rows (${tx.unsafe(recordTypes)})
        ON CONFLICT (request_id) DO NOTHING RETURNING request_id`;
      if (added.length === 0) return { added: 0, tooOld };
      const fresh = newOf(usage, added);
      const { rows: ofAll, byTag } = rollUp(fresh);
      await addSums(tx, "usage_rollups", rollupColumns, ofAll);
      if (byTag.length > 0) await addSums(tx, "usage_tag_rollups", tagRollupColumns, byTag);
      if (textOf("exports") !== undefined) {
        const ids = added.map((row) => row.request_id);
        await tx`
          INSERT INTO export_queue (record_id, kind, queued_at)
          SELECT value, 'requests', ${databaseSeconds(tx)}
          FROM json_array_elements_text(CAST(CAST(${JSON.stringify(ids)} AS TEXT) AS JSON))
          ON CONFLICT (record_id) DO NOTHING`;
      }
      // The totals come last, because all processes update the same rows and wait for each other's locks on them.
      await addSums(tx, "usage_totals", totalsColumns, totalsOf(fresh));
      return { added: added.length, tooOld };
    });
  }

  /** Closes nothing, because the database owns the connections. */
  close(): void {}
}

function replacedError(): GatewayError {
  return new GatewayError("service_unavailable", "The database was emptied or replaced. Put it back.", {
    detail: "the database is that of another installation",
  });
}

/** Returns the records that were added, without duplicates in `usage`. */
function newOf(usage: UsageColumns, added: readonly { request_id: string }[]): UsageColumns {
  if (added.length === usage.length) return usage;
  const ids = new Set(added.map((row) => row.request_id));
  return usage.filter((row) => ids.delete(usage.requestIds[row] ?? ""));
}

/** Sums up the records for the roll-ups, because one statement can update each row only once. */
function rollUp(usage: UsageColumns): { rows: RollupRow[]; byTag: RollupRow[] } {
  const rows: RollupRow[] = [];
  const byTag: RollupRow[] = [];
  for (const span of ["hour", "day"] as const) {
    const sums = new UsageSums(span);
    sums.add(usage);
    for (let sum = 0; sum < sums.size; sum++) (sums.isByTag(sum) ? byTag : rows).push(sums.rowAt(sum, span));
  }
  return { rows, byTag };
}

async function addSums(tx: Database, table: string, of: SumColumns, rows: SumRow[]): Promise<void> {
  const { names, types: rowTypes, objects } = sumRows(of, rows);
  await tx`
    INSERT INTO ${tx.unsafe(table)} (${tx.unsafe(names)}) SELECT ${tx.unsafe(names)}
    FROM json_to_recordset(CAST(CAST(${JSON.stringify(objects)} AS TEXT) AS JSON)) AS rows (${tx.unsafe(rowTypes)})
    ON CONFLICT (${tx.unsafe(of.key.join(", "))}) DO UPDATE SET ${tx.unsafe(addedUp(table, of))}`;
}

/** Returns a copy without characters that PostgreSQL cannot store. A single model name must not block all records. */
function storable(usage: UsageColumns): UsageColumns {
  const kinds = usage.kinds.slice(0, usage.length);
  if (kinds.every(({ request, upstream }) => isStorable(request.model) && (upstream === null || isStorable(upstream))))
    return usage;
  return UsageColumns.of(
    usage.records().map((record) => {
      const { model, upstream } = record;
      return { ...record, model: readable(model), upstream: upstream === null ? null : readable(upstream) };
    }),
  );
}

function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

function readable(text: string): string {
  return text.toWellFormed().replaceAll("\0", "\ufffd");
}

/** Sorts rows by their key. All writers use the same order, so they do not deadlock. */
function inOrder(rows: readonly SumRow[], keyLength: number): SumRow[] {
  const keyOf = (row: SumRow) => row.slice(0, keyLength).join("\n");
  return rows
    .map((row) => ({ row, place: keyOf(row) }))
    .sort((a, b) => (a.place < b.place ? -1 : 1))
    .map(({ row }) => row);
}

/** `trail` and `details` are JSON texts; undefined becomes null. */
function toRow(record: UsageRecord, trail: string | undefined, details: string | undefined) {
  return {
    request_id: record.requestId,
    at: record.at,
    account_id: record.accountId,
    key_id: record.keyId,
    app_id: record.appId,
    environment: record.environment,
    operation: record.operation,
    model: record.model,
    stream: record.stream ? 1 : 0,
    tags: record.tags && tagsText(record.tags),
    outcome: record.outcome,
    error_code: record.errorCode,
    prompt_tokens: record.promptTokens,
    completion_tokens: record.completionTokens,
    estimated: record.estimated ? 1 : 0,
    nano_usd: record.nanoUsd,
    capped: record.capped ? 1 : 0,
    upstream: record.upstream,
    duration_ms: record.durationMs,
    first_token_ms: record.firstTokenMs,
    queue_ms: record.queueMs,
    trail,
    cached_tokens: record.parts?.cachedTokens ?? 0,
    cache_write_tokens: record.parts?.cacheWriteTokens ?? 0,
    reasoning_tokens: record.parts?.reasoningTokens ?? 0,
    details,
  };
}

const types: Record<keyof ReturnType<typeof toRow>, "TEXT" | "BIGINT" | "INTEGER"> = {
  request_id: "TEXT",
  at: "BIGINT",
  account_id: "TEXT",
  key_id: "TEXT",
  app_id: "TEXT",
  environment: "TEXT",
  operation: "TEXT",
  model: "TEXT",
  stream: "INTEGER",
  tags: "TEXT",
  outcome: "TEXT",
  error_code: "TEXT",
  prompt_tokens: "BIGINT",
  completion_tokens: "BIGINT",
  estimated: "INTEGER",
  nano_usd: "BIGINT",
  capped: "INTEGER",
  upstream: "TEXT",
  duration_ms: "BIGINT",
  first_token_ms: "BIGINT",
  queue_ms: "BIGINT",
  trail: "TEXT",
  cached_tokens: "BIGINT",
  cache_write_tokens: "BIGINT",
  reasoning_tokens: "BIGINT",
  details: "TEXT",
};

const recordColumns = Object.keys(types).join(", ");
const recordTypes = Object.entries(types)
  .map((pair) => pair.join(" "))
  .join(", ");

const tagRollupColumns = { ...rollupColumns, key: [...rollupColumns.key, tagColumn] };

/**
 * Returns the names and types of the columns, and the values of the rows, for an SQL statement. The key columns come
 * first.
 */
function sumRows({ key, sums, times }: SumColumns, rows: SumRow[]) {
  const columns = [...key, ...sums, ...times];
  const isText = (name: string) => key.includes(name) && name !== "start";
  return {
    names: columns.join(", "),
    types: columns.map((name) => `${name} ${isText(name) ? "TEXT" : "BIGINT"}`).join(", "),
    objects: inOrder(rows, key.length).map((row) => Object.fromEntries(columns.map((name, i) => [name, row[i]]))),
  };
}

function addedUp(table: string, { sums, times }: SumColumns): string {
  return [
    ...sums.map((name) => `${name} = ${table}.${name} + excluded.${name}`),
    ...times.map((name, i) => `${name} = ${i === 0 ? "least" : "greatest"}(${table}.${name}, excluded.${name})`),
  ].join(", ");
}
