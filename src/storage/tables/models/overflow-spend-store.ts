// The cost of each model's overflow in each span, in the database.
import { SQL } from "bun";
import {
  type OverflowSpendStore,
  type SpendAnswer,
  type SpendChange,
  type SpendPeriod,
  SpendUnchanged,
} from "../../../domain/models/policies/overflow.ts";
import { type Database, writing } from "../../sql/database.ts";
import { available, translated } from "../../sql/outage.ts";
import { mayBeCommitted, postgresCode } from "../../sql/postgres-errors.ts";

/** Seconds to keep sums: two months, the longest span and the one before it. */
const keptSeconds = 62 * 86_400;

/** Codes of SQLite after which no part of a transaction is committed. */
const lockedOrFull = /^SQLITE_(BUSY|LOCKED|FULL)/;

interface Row {
  nano_usd: number | string;
}

export class SqlOverflowSpendStore implements OverflowSpendStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async change(changes: readonly SpendChange[]): Promise<readonly SpendAnswer[]> {
    try {
      return await writing(this.#db, async (tx) => {
        const answers: SpendAnswer[] = [];
        for (const change of changes) answers.push(await changed(tx, change));
        return answers;
      });
    } catch (error) {
      const code = error instanceof SQL.SQLiteError ? String(error.code) : postgresCode(error);
      const isUndone = error instanceof SQL.SQLiteError ? lockedOrFull.test(error.code) : !mayBeCommitted(error);
      throw isUndone ? new SpendUnchanged(`database: ${code}`) : translated(error);
    }
  }

  async spent({ model, per, start }: SpendPeriod): Promise<number> {
    const rows: Row[] = await available(this.#db`
      SELECT nano_usd FROM overflow_spend WHERE model = ${model} AND per = ${per} AND start = ${start}`);
    return Number(rows[0]?.nano_usd ?? 0);
  }
}

/** Makes one change. The caller's transaction excludes other writes meanwhile. */
async function changed(tx: Database, { model, per, start, nanoUsd, most }: SpendChange): Promise<SpendAnswer> {
  const [row]: Row[] = await tx`
    SELECT nano_usd FROM overflow_spend WHERE model = ${model} AND per = ${per} AND start = ${start}`;
  const before = Number(row?.nano_usd ?? 0);
  if (most !== null && before + nanoUsd > most) return { made: false, spentNanoUsd: before };
  const spentNanoUsd = Math.max(0, Math.min(before + nanoUsd, Number.MAX_SAFE_INTEGER));
  if (row) {
    await tx`
      UPDATE overflow_spend SET nano_usd = ${spentNanoUsd}
      WHERE model = ${model} AND per = ${per} AND start = ${start}`;
  } else {
    await tx`INSERT INTO overflow_spend (model, per, start, nano_usd) VALUES (${model}, ${per}, ${start}, ${spentNanoUsd})`;
    await tx`DELETE FROM overflow_spend WHERE start < ${start - keptSeconds}`;
  }
  return { made: true, spentNanoUsd };
}
