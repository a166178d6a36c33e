// The port that writes usage, whichever database it is; an owner's totals, from the roll-ups.
import type { UsageRecord, UsageTotals } from "../../domain/usage/usage.ts";
import type { Database } from "../../storage/sql/database.ts";
import { at, UsageColumns } from "./usage-columns.ts";
import type { TotalOf } from "./usage-sums.ts";

/** Each database has its own: this is the one path on which its speed counts. */
export interface UsageWriter {
  /**
   * Adds what is not there yet, records and roll-ups together or none; resolves to the number of records that were new.
   * A request id counts once, its first record stands. At most some thousand at a time. A lock that another holds is
   * waited for, `waitMs` at most, while other work goes on. What is older than requests are kept is left out: nobody can
   * tell any more whether it was counted.
   */
  insert(usage: UsageColumns | readonly UsageRecord[], waitMs?: number): Promise<number>;
  /** Records that were left out for their age since it was opened. */
  readonly tooOld: number;
  readonly rollups: LaterRollups;
  close(): void;
}

/** Records that the roll-ups lack for now. Whoever reads them must have had them caught up, or add it. */
export interface LaterRollups {
  /** Counts batches of which they lack something, and how many of them were moved there since. */
  readonly gathered: number;
  readonly moved: number;
  /** Whether there is anything to do. */
  readonly isBehind: boolean;
  /** Whether it is time to go on with it. */
  readonly isDue: boolean;
  /** Some milliseconds of work; rejects as `insert` does. `waitMs`: as there. */
  goOn(waitMs?: number): Promise<void>;
  totalOf(owner: TotalOf): UsageTotals;
}

/** Resolves when the roll-ups lack nothing. */
export async function catchUp({ rollups }: UsageWriter, waitMs?: number): Promise<void> {
  while (rollups.isBehind) await rollups.goOn(waitMs);
}

export function columnsOf(usage: UsageColumns | readonly UsageRecord[]): UsageColumns {
  return usage instanceof UsageColumns ? usage : UsageColumns.of(usage);
}

/** `from`: Unix seconds as `installation` has them; undefined: all are kept. */
export function keptUsage(usage: UsageColumns, from: string | undefined): UsageColumns {
  if (from === undefined) return usage;
  const since = Number(from);
  return usage.filter((row) => usage.number(row, at) >= since);
}

/** The owner of totals: an account, or a key with everything that counts against it. */
export interface UsageOwner {
  type: "key" | "account";
  id: string;
  environment: string;
  /** Unix seconds: from `since`, before `until`; both the start of a day (UTC). */
  since: number;
  until: number;
}

/** The sums of what is in the database, and which of the records that are not there yet belong to the same owner. */
export interface OwnerTotals {
  totals: UsageTotals;
  totalOf: TotalOf;
  owns(usage: UsageColumns, row: number): boolean;
}

export async function readOwnerTotals(db: Database, owner: UsageOwner): Promise<OwnerTotals> {
  const { type, id, environment, since, until } = owner;
  const time = { environment, since, until };
  const inTime = (usage: UsageColumns, row: number) =>
    usage.kindAt(row).request.environment === environment &&
    usage.number(row, at) >= since &&
    usage.number(row, at) < until;
  if (type === "account") {
    const [row] = await db`
      SELECT coalesce(sum(prompt_tokens + completion_tokens), 0) AS tokens, coalesce(sum(nano_usd), 0) AS nano_usd
      FROM usage_rollups
      WHERE account_id = ${id} AND environment = ${environment} AND span = 'day' AND start >= ${since} AND start < ${until}`;
    const totalOf = { ...time, accountId: id };
    return { totals: totalsOf(row), totalOf, owns: (usage, row) => usage.accountIds[row] === id && inTime(usage, row) };
  }
  const keyIds = await readFamily(db, id);
  const [row] = await db`
    SELECT coalesce(sum(prompt_tokens + completion_tokens), 0) AS tokens, coalesce(sum(nano_usd), 0) AS nano_usd
    FROM usage_rollups
    WHERE key_id IN ${db([...keyIds])} AND environment = ${environment} AND span = 'day' AND start >= ${since} AND start < ${until}`;
  const totalOf = { ...time, keyIds };
  return {
    totals: totalsOf(row),
    totalOf,
    owns: (usage, row) => keyIds.has(usage.keyIds[row] ?? "") && inTime(usage, row),
  };
}

/** A key, those with which it shares its limit after rotations, and the keys that these made: they count against it. */
async function readFamily(db: Database, id: string): Promise<Set<string>> {
  const rows: { id: string }[] = await db`
    WITH RECURSIVE family (id) AS (
      SELECT id FROM api_keys
      WHERE id = ${id} OR limit_id = ${id} OR limit_id = (SELECT limit_id FROM api_keys WHERE id = ${id})
      UNION
      SELECT api_keys.id FROM api_keys JOIN family ON api_keys.parent_id = family.id
    )
    SELECT id FROM family`;
  return new Set([id, ...rows.map((row) => row.id)]);
}

function totalsOf(row: { tokens: number | string; nano_usd: number | string }): UsageTotals {
  return { tokens: Number(row.tokens), nanoUsd: Number(row.nano_usd) };
}
