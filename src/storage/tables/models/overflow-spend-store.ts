// What overflows of each model have cost in each span, in the database.
import type {
  OverflowSpendStore,
  SpendAnswer,
  SpendChange,
  SpendPlace,
} from "../../../domain/models/policies/overflow.ts";
import type { Database } from "../../sql/database.ts";
import { available, written } from "../../sql/outage.ts";

/** Two months: of the longest span, the one before. What is older is of no use to anybody. */
const keptSeconds = 62 * 86_400;

interface Row {
  nano_usd: number | string;
}

export class SqlOverflowSpendStore implements OverflowSpendStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async change(changes: readonly SpendChange[]): Promise<readonly SpendAnswer[]> {
    return await written(this.#db, async (tx) => {
      const answers: SpendAnswer[] = [];
      for (const change of changes) answers.push(await changed(tx, change));
      return answers;
    });
  }

  async spent({ model, per, start }: SpendPlace): Promise<number> {
    const rows: Row[] = await available(this.#db`
      SELECT nano_usd FROM overflow_spend WHERE model = ${model} AND per = ${per} AND start = ${start}`);
    return Number(rows[0]?.nano_usd ?? 0);
  }
}

/** Nobody else writes meanwhile. */
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
