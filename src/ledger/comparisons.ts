// Compares a model with another that gets a share of its requests. Reads single records, because roll-ups have no
// medians.
import {
  askedTag,
  type ComparedSide,
  type ComparedTimes,
  type Comparison,
  type ComparisonQuery,
  type Comparisons,
  shadowSuffix,
  shadowTag,
} from "../domain/usage/comparison.ts";
import { tokensPerSecond } from "../domain/usage/usage.ts";
import type { Database } from "../storage/sql/database.ts";
import { available } from "../storage/sql/outage.ts";
import { tagInText } from "../storage/tables/tags-text.ts";

/** Maximum rows that one query scans. SQLite blocks the thread that serves requests. */
const rowsAtOnce = 2_000;
/** Maximum queries of one comparison: two million records, in a few seconds, with pauses for requests. */
const maxSlices = 1_000;
/** Maximum compared requests of both models together, because their times are held in memory. */
const maxCompared = 50_000;

interface Row {
  model: string;
  outcome: string;
  prompt_tokens: number | string;
  completion_tokens: number | string;
  nano_usd: number | string | null;
  first_token_ms: number | string | null;
  duration_ms: number | string;
  queue_ms: number | string;
}

export class SqlComparisons implements Comparisons {
  readonly #db: Database;
  readonly #catchUp: () => Promise<void>;

  /** `catchUp` brings the usage roll-ups up to date (`SpoolLedger.catchUp`). */
  constructor(db: Database, catchUp: () => Promise<void>) {
    this.#db = db;
    this.#catchUp = catchUp;
  }

  async compare(query: ComparisonQuery): Promise<Comparison> {
    await this.#catchUp();
    const [own, other] = [new Side(), new Side()];
    let { end: until } = query;
    for (let slices = 0; until > query.start; slices++) {
      if (slices === maxSlices || own.requests + other.requests >= maxCompared) break;
      await new Promise(setImmediate);
      const from = await this.#sliceStart(query.start, until);
      const rows = await available<Row[]>(this.#read(query, from, until));
      for (const row of rows) (row.model === query.model ? own : other).add(row);
      until = from;
    }
    return { own: own.figures(), other: other.figures(), isPartial: until > query.start };
  }

  /**
   * Returns the start of a slice that ends before `until` and has at most `rowsAtOnce` rows. Rows of the same second
   * are never split, so a slice of one second may have more.
   */
  async #sliceStart(start: number, until: number): Promise<number> {
    const [row]: { at: number | string }[] = await available(this.#db`
      SELECT at FROM usage_records WHERE at >= ${start} AND at < ${until} ORDER BY at DESC LIMIT 1 OFFSET ${rowsAtOnce}`);
    return row ? Math.min(Number(row.at) + 1, until - 1) : start;
  }

  #read({ model, other, kind }: ComparisonQuery, from: number, until: number): PromiseLike<Row[]> {
    const db = this.#db;
    const columns = (of: string) =>
      db.unsafe(
        [
          "model",
          "outcome",
          "prompt_tokens",
          "completion_tokens",
          "nano_usd",
          "first_token_ms",
          "duration_ms",
          "queue_ms",
        ]
          .map((name) => `${of}.${name} AS ${name}`)
          .join(", "),
      );
    if (kind === "split") {
      return db`
        SELECT ${columns("r")} FROM usage_records r
        WHERE r.at >= ${from} AND r.at < ${until} AND r.model IN (${model}, ${other})
          AND replace(r.tags, ${tagInText(askedTag(model))}, '') <> r.tags AND r.outcome IN ('completed', 'failed')`;
    }
    // Pairs without a result are left out: the shadow request was dropped for lack of capacity, or a client
    // disconnected.
    const pairs = db`
      usage_records s JOIN usage_records r ON r.request_id = replace(s.request_id, ${shadowSuffix}, '')
      WHERE s.at >= ${from} AND s.at < ${until} AND s.model = ${other} AND r.model = ${model}
        AND replace(s.tags, ${tagInText(shadowTag)}, '') <> s.tags
        AND s.outcome IN ('completed', 'failed') AND r.outcome IN ('completed', 'failed')
        AND coalesce(s.error_code, '') <> 'service_unavailable'`;
    return db`SELECT ${columns("s")} FROM ${pairs} UNION ALL SELECT ${columns("r")} FROM ${pairs}`;
  }
}

class Side {
  requests = 0;
  #errors = 0;
  #promptTokens = 0;
  #completionTokens = 0;
  #answered = 0;
  #answerTokens = 0;
  #answerMs = 0;
  #nanoUsd: number | null = 0;
  readonly #firstTokenMs: number[] = [];
  readonly #durationMs: number[] = [];

  add(row: Row): void {
    const tokens = Number(row.completion_tokens);
    this.requests++;
    this.#promptTokens += Number(row.prompt_tokens);
    this.#completionTokens += tokens;
    if (this.#nanoUsd !== null) this.#nanoUsd = row.nano_usd === null ? null : this.#nanoUsd + Number(row.nano_usd);
    if (row.outcome === "failed") {
      this.#errors++;
      return;
    }
    this.#answered++;
    this.#answerTokens += tokens;
    this.#answerMs += Number(row.duration_ms) - Number(row.queue_ms);
    this.#durationMs.push(Number(row.duration_ms));
    if (row.first_token_ms !== null) this.#firstTokenMs.push(Number(row.first_token_ms));
  }

  figures(): ComparedSide {
    return {
      requests: this.requests,
      errors: this.#errors,
      promptTokens: this.#promptTokens,
      completionTokens: this.#completionTokens,
      nanoUsd: this.#nanoUsd,
      firstTokenMs: timesOf(this.#firstTokenMs),
      durationMs: timesOf(this.#durationMs),
      tokensPerSecond: tokensPerSecond(this.#answerTokens, this.#answerMs),
      answerTokens: this.#answered === 0 ? null : this.#answerTokens / this.#answered,
    };
  }
}

/** Returns the median and the 95th percentile by the nearest-rank method. */
function timesOf(all: number[]): ComparedTimes {
  all.sort((a, b) => a - b);
  const at = (part: number) => all[Math.max(0, Math.ceil(part * all.length) - 1)] ?? null;
  return { p50: at(0.5), p95: at(0.95) };
}
