// Speeds of models from the newest records of the ledger.
import { percentilesOf, type Speed, type Speeds } from "../../domain/usage/speed.ts";
import type { Database } from "../sql/database.ts";
import { available } from "../sql/outage.ts";

interface Row {
  model: string;
  upstream: string;
  /** Milliseconds of each answer, separated by commas. */
  first_tokens: string | null;
  totals: string;
  tokens: number | string;
  generation_ms: number | string;
}

const minuteSeconds = 60;
const minutes = 15;
/**
 * Maximum rows of each minute: enough for a mean, and read in a millisecond, because SQLite blocks the thread that
 * serves requests.
 */
const rowsPerMinute = 500;

export class SqlSpeeds implements Speeds {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async recent(nowSeconds: number): Promise<Speed[]> {
    const sums = new Map<string, Sums>();
    for (let minute = 0; minute < minutes; minute++) {
      if (minute > 0) await new Promise(setImmediate);
      const until = nowSeconds + 1 - minute * minuteSeconds;
      for (const row of await this.#read(until - minuteSeconds, until)) add(sums, row);
    }
    return [...sums.values()].map(({ model, upstream, firstTokens, totals, tokens, generationMs }) => ({
      model,
      upstream,
      firstTokenMs: firstTokens.length === 0 ? null : firstTokens.reduce((sum, ms) => sum + ms, 0) / firstTokens.length,
      tokensPerSecond: generationMs > 0 ? (tokens * 1000) / generationMs : null,
      firstTokenPercentiles: percentilesOf(firstTokens),
      totalPercentiles: percentilesOf(totals),
    }));
  }

  /** Reads the times of each answer, and two sums: the tokens after the first token, and the time after it. */
  async #read(from: number, until: number): Promise<Row[]> {
    return await available(this.#db`
      SELECT model, upstream, string_agg(CAST(first_token_ms AS TEXT), ',') AS first_tokens,
        string_agg(CAST(duration_ms AS TEXT), ',') AS totals,
        sum(CASE WHEN completion_tokens > 1 AND duration_ms > first_token_ms THEN completion_tokens - 1 ELSE 0 END) AS tokens,
        sum(CASE WHEN completion_tokens > 1 AND duration_ms > first_token_ms THEN duration_ms - first_token_ms ELSE 0 END)
          AS generation_ms
      FROM (
        SELECT model, upstream, outcome, first_token_ms, completion_tokens, duration_ms FROM usage_records
        WHERE at >= ${from} AND at < ${until} ORDER BY at DESC LIMIT ${rowsPerMinute}
      ) AS newest
      WHERE upstream IS NOT NULL AND outcome = 'completed'
      GROUP BY model, upstream`);
  }
}

interface Sums {
  model: string;
  upstream: string;
  firstTokens: number[];
  totals: number[];
  tokens: number;
  generationMs: number;
}

function add(sums: Map<string, Sums>, row: Row): void {
  const name = JSON.stringify([row.model, row.upstream]);
  const { model, upstream } = row;
  const known = sums.get(name) ?? { model, upstream, firstTokens: [], totals: [], tokens: 0, generationMs: 0 };
  if (row.first_tokens !== null) known.firstTokens.push(...row.first_tokens.split(",").map(Number));
  known.totals.push(...row.totals.split(",").map(Number));
  known.tokens += Number(row.tokens);
  known.generationMs += Number(row.generation_ms);
  sums.set(name, known);
}
