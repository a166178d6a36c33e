// Adds up usage from the roll-ups or totals by time bucket and group, page by page.
import { countsOf } from "../../domain/usage/time-counts.ts";
import type {
  UsageBucket,
  UsageGroup,
  UsagePosition,
  UsageQuery,
  UsageReports,
  UsageRow,
} from "../../domain/usage/usage.ts";
import { bucketEnd, bucketStart } from "../../domain/usage/usage-bucket.ts";
import type { Database } from "../../storage/sql/database.ts";
import { available } from "../../storage/sql/outage.ts";
import { accountsOf, credentialsOf } from "../../storage/tables/credential-rows.ts";
import { anyTag, rollupColumns } from "./usage-sums.ts";
import { type TotalsSource, totalsColumns, totalsFor } from "./usage-totals.ts";

/** A query that the roll-ups answer. The others are answered from single records. */
type SummedQuery = UsageQuery & { bucket: Exclude<UsageBucket, "minute"> };

const spans: Record<SummedQuery["bucket"], "hour" | "day"> = { hour: "hour", day: "day", month: "day" };

/** The column of each group. Only these names are inserted into a query. */
const columns: Record<UsageGroup, string> = {
  model: "model",
  key: "key_id",
  environment: "environment",
  app: "app_id",
  tag: "tag",
  account: "account_id",
  person: "person_id",
  upstream: "upstream",
  deployment: "deployment",
  outcome: "outcome",
  organization: "organization_id",
};
const ofRollups: ReadonlySet<UsageGroup> = new Set([
  ...(["model", "key", "environment", "app", "tag", "account", "organization", "person"] as const),
]);
const sums = rollupColumns.sums;

/**
 * The time range of a single query. SQLite blocks the thread that serves requests, so a page uses several short
 * queries.
 */
const windowOf: Record<SummedQuery["bucket"], UsageBucket> = { hour: "day", day: "month", month: "month" };

const groupColumns = ["start", "account_id", "environment", "key_id", "app_id", "model"];

/** The columns of rows whose sums are added. */
const wholes = [...groupColumns, "'' AS tag", ...sums].join(", ");
const ofTags = [...groupColumns, "tag", ...sums].join(", ");
/** The columns of rows with the person of their credential and the organization of their account. */
const ofParties = [
  ...groupColumns,
  "coalesce((SELECT person_id FROM api_keys WHERE id = usage_rollups.key_id), '') AS person_id",
  "coalesce((SELECT organization_id FROM accounts WHERE id = usage_rollups.account_id), '') AS organization_id",
  ...sums,
].join(", ");
/** The same columns with negated sums, for rows that are subtracted. */
const lessened = [...groupColumns, "'' AS tag", ...sums.map((name) => `-${name} AS ${name}`)].join(", ");

interface Row {
  earliest: number | string;
  requests: number | string;
  prompt_tokens: number | string;
  completion_tokens: number | string;
  nano_usd: string;
  errors: number | string;
  timed: number | string;
  first_token_ms: number | string;
  generated_tokens: number | string;
  generation_ms: number | string;
  cached_tokens: number | string;
  cache_write_tokens: number | string;
  reasoning_tokens: number | string;
  unpriced: number | string;
  model?: string;
  key_id?: string;
  environment?: string;
  app_id?: string;
  tag?: string;
  account_id?: string;
  person_id?: string;
  upstream?: string;
  deployment?: string;
  outcome?: string;
  /** The counts of answers by time, from `usage_totals`. */
  [counts: `first_${number}` | `total_${number}`]: number | string;
  organization_id?: string;
}

interface Window {
  /** Time span in Unix seconds. `from` is included, `until` is not. */
  from: number;
  until: number;
  /** The groups of the last row of the previous page; only for a window of one bucket. */
  after: readonly string[];
  limit: number;
}

export class SqlUsageReports implements UsageReports {
  readonly #db: Database;
  readonly #catchUp: () => Promise<void>;
  readonly #totalsSince: number;

  /**
   * `catchUp` brings the usage roll-ups up to date (`SpoolLedger.catchUp`). By default, no report reads `usage_totals`.
   */
  constructor(
    db: Database,
    catchUp: () => Promise<void> = async () => {},
    { totalsSince = Number.POSITIVE_INFINITY }: { totalsSince?: number } = {},
  ) {
    this.#db = db;
    this.#catchUp = catchUp;
    this.#totalsSince = totalsSince;
  }

  async report(query: UsageQuery, page: { after: UsagePosition | undefined; limit: number }): Promise<UsageRow[]> {
    const totals = totalsFor(query);
    if (query.bucket === "minute" || !(isSummed(query) || (totals && query.start >= this.#totalsSince))) {
      const { reportOfRecords } = await import("./record-report.ts");
      return reportOfRecords(this.#db, query, page);
    }
    await this.#catchUp();
    const rows: UsageRow[] = [];
    const summed: SummedQuery = { ...query, bucket: query.bucket };
    for (const window of windows(summed, page.after)) {
      if (window.from > query.start) await new Promise(setImmediate);
      const source = window.from >= this.#totalsSince ? totals : undefined;
      const found: Row[] = await available(this.#read(summed, { ...window, limit: page.limit - rows.length }, source));
      for (const row of found) rows.push(toUsageRow(summed, row, source !== undefined));
      if (rows.length >= page.limit) break;
    }
    return rows;
  }

  #read(query: SummedQuery, { from, until, after, limit }: Window, totals: TotalsSource | undefined) {
    const db = this.#db;
    const groups = totals?.groups ?? query.groupBy.map((group) => columns[group]);
    // With months as buckets, a window is a single month, so all rows are in one bucket and have the same environment.
    const order = db.unsafe([query.bucket === "month" ? "environment" : "start", ...groups].join(", "));
    const names = groups.map((column, i) => `${column} AS ${columns[query.groupBy[i] ?? "model"]}, `);
    return db`
      SELECT min(start) AS earliest, ${db.unsafe(names.join(""))}
        ${db.unsafe((totals ? totalsColumns.sums : sums).map(summed).join(", "))}
      FROM ${totals ? this.#totals(query, totals, from, until) : this.#rollups(query, from, until)}
        ${after.length === 0 ? db`` : db`AND (${db.unsafe(groups.join(", "))}) > (${this.#values(after)})`}
      GROUP BY ${order} HAVING sum(requests) > 0 ORDER BY ${order} LIMIT ${limit}`;
  }

  #totals(
    { environment, bucket, model }: SummedQuery,
    { accountId, kind, name }: TotalsSource,
    from: number,
    until: number,
  ) {
    const db = this.#db;
    return db`usage_totals WHERE account_id = ${accountId} AND environment = ${environment} AND span = ${spans[bucket]}
      AND kind = ${kind} AND start >= ${from} AND start < ${until}
      ${name === undefined ? db`` : db`AND name = ${name}`} ${model === undefined ? db`` : db`AND model = ${model}`}`;
  }

  /** Returns the table and condition of the rows to add up. */
  #rollups(query: SummedQuery, from: number, until: number) {
    const db = this.#db;
    const { tag, groupBy } = query;
    if (tag !== undefined) return db`usage_tag_rollups ${this.#fitting(query, from, until)} AND tag = ${tag}`;
    if (groupBy.includes("person") || groupBy.includes("organization")) {
      return db`(
        SELECT ${db.unsafe(ofParties)} FROM usage_rollups ${this.#fitting(query, from, until)}) AS found WHERE 1 = 1`;
    }
    if (!groupBy.includes("tag")) return db`usage_rollups ${this.#fitting(query, from, until)}`;
    // The rows of each tag, and one row for requests without tags: all requests minus those with any tag.
    return db`(
        SELECT ${db.unsafe(wholes)} FROM usage_rollups ${this.#fitting(query, from, until)}
        UNION ALL
        SELECT ${db.unsafe(lessened)} FROM usage_tag_rollups ${this.#fitting(query, from, until)} AND tag = ${anyTag}
        UNION ALL
        SELECT ${db.unsafe(ofTags)} FROM usage_tag_rollups ${this.#fitting(query, from, until)} AND tag <> ${anyTag}
      ) AS found WHERE 1 = 1`;
  }

  #fitting(query: SummedQuery, from: number, until: number) {
    const db = this.#db;
    const span = spans[query.bucket];
    const ofSpan = db`environment = ${query.environment} AND span = ${span}`;
    const { accountId, keyId, appId, personId } = query;
    const isOfAll = accountId === null && [keyId, appId, personId].every((id) => id === undefined);
    const whose = isOfAll
      ? db`span || environment = ${span + query.environment}`
      : db`${this.#whose(query)} AND ${ofSpan}`;
    return db`WHERE ${whose} AND start >= ${from} AND start < ${until}
      ${query.organizationId === undefined ? db`` : db`AND account_id IN ${accountsOf(db, query.organizationId)}`}
      ${query.model === undefined ? db`` : db`AND model = ${query.model}`}`;
  }

  /** Returns the SQL condition for the query's owner. Only the first part uses an index. */
  #whose({ accountId, environment, keyId, appId, personId }: UsageQuery) {
    const db = this.#db;
    const ofAccount = accountId === null ? db`` : db`AND account_id || '' = ${accountId}`;
    if (personId !== undefined) {
      const credentials = credentialsOf(db, { accountId, environment, personId });
      const ofKey =
        keyId === undefined ? db`key_id IN ${credentials}` : db`key_id = ${keyId} AND key_id || '' IN ${credentials}`;
      return db`${ofKey} ${ofAccount} ${appId === undefined ? db`` : db`AND app_id || '' = ${appId}`}`;
    }
    // With the index by key or app, the query is fast even if the account has much other usage.
    if (keyId !== undefined)
      return db`key_id = ${keyId} ${ofAccount} ${appId === undefined ? db`` : db`AND app_id || '' = ${appId}`}`;
    if (appId !== undefined) return db`app_id = ${appId} AND app_id <> '' ${ofAccount}`;
    return db`account_id = ${accountId}`;
  }

  #values(values: readonly string[]) {
    const [first, ...rest] = values;
    return rest.reduce((list, value) => this.#db`${list}, ${value}`, this.#db`${first}`);
  }
}

/** Reports whether the roll-ups can answer the query. */
function isSummed(query: UsageQuery): query is SummedQuery {
  const { bucket, groupBy, upstream, outcome } = query;
  return (
    bucket !== "minute" && upstream === undefined && outcome === undefined && groupBy.every((one) => ofRollups.has(one))
  );
}

/** Returns the SQL of a sum. Money is read as text, because a month's sum may exceed the safe integers of a double. */
function summed(name: string): string {
  return name === "nano_usd" ? `CAST(sum(${name}) AS TEXT) AS ${name}` : `sum(${name}) AS ${name}`;
}

/**
 * Yields the time windows of a page. If the previous page ended within a bucket, the first window is the rest of that
 * bucket.
 */
function* windows(query: SummedQuery, last: UsagePosition | undefined): Generator<Omit<Window, "limit">> {
  let from = query.start;
  if (last && last.start >= query.start) {
    from = bucketEnd(query.bucket, last.start);
    const after = query.groupBy.map((group) => last.groups[group] ?? "");
    if (after.length > 0 && last.start < query.end) yield { from: last.start, until: from, after };
  }
  while (from < query.end) {
    const until = Math.min(bucketEnd(windowOf[query.bucket], from), query.end);
    yield { from, until, after: [] };
    from = until;
  }
}

function toUsageRow({ bucket, groupBy }: SummedQuery, row: Row, hasTimes: boolean): UsageRow {
  const start = bucketStart(bucket, Number(row.earliest));
  const groups: UsageRow["groups"] = {};
  if (groupBy.includes("model")) groups.model = row.model ?? "";
  if (groupBy.includes("key")) groups.key = row.key_id ?? "";
  if (groupBy.includes("environment")) groups.environment = row.environment ?? "";
  if (groupBy.includes("app")) groups.app = row.app_id || null;
  if (groupBy.includes("tag")) groups.tag = row.tag || null;
  if (groupBy.includes("account")) groups.account = row.account_id ?? "";
  if (groupBy.includes("person")) groups.person = row.person_id || null;
  if (groupBy.includes("upstream")) groups.upstream = row.upstream || null;
  if (groupBy.includes("deployment")) groups.deployment = row.deployment || null;
  if (groupBy.includes("outcome")) groups.outcome = row.outcome ?? "";
  if (groupBy.includes("organization")) groups.organization = row.organization_id || null;
  return {
    start,
    end: bucketEnd(bucket, start),
    groups,
    requests: Number(row.requests),
    promptTokens: Number(row.prompt_tokens),
    cachedTokens: Number(row.cached_tokens),
    cacheWriteTokens: Number(row.cache_write_tokens),
    completionTokens: Number(row.completion_tokens),
    reasoningTokens: Number(row.reasoning_tokens),
    nanoUsd: Number(row.nano_usd),
    exactNanoUsd: BigInt(row.nano_usd),
    unpriced: Number(row.unpriced),
    errors: Number(row.errors),
    timed: Number(row.timed),
    firstTokenMs: Number(row.first_token_ms),
    generatedTokens: Number(row.generated_tokens),
    generationMs: Number(row.generation_ms),
    ...(hasTimes
      ? {
          times: countsOf(
            (step) => Number(row[`first_${step}`]),
            (step) => Number(row[`total_${step}`]),
          ),
        }
      : {}),
  };
}
