// Adds up usage from single requests: by minute, model server, deployment or outcome, which the roll-ups do not know.
import { invalidRequest } from "../../base/errors.ts";
import { addCounts, countsOf, type TimeCounts, timeBounds } from "../../domain/usage/time-counts.ts";
import type { UsageGroup, UsagePosition, UsageQuery, UsageRow } from "../../domain/usage/usage.ts";
import { bucketEnd, bucketStart } from "../../domain/usage/usage-bucket.ts";
import type { Database } from "../../storage/sql/database.ts";
import { available } from "../../storage/sql/outage.ts";
import { accountsOf, credentialsOf } from "../../storage/tables/credential-rows.ts";
import { tagInText } from "../../storage/tables/tags-text.ts";

/** Maximum requests of one query, because SQLite blocks the thread that serves requests. */
const rowsAtOnce = 4_000;
/** Maximum queries and rows of one report. */
const maxQueries = 250;
const maxRows = 100_000;

/** The SQL of each group. There is no group by tag, because a request may have several tags. */
const expressions: Partial<Record<UsageGroup, string>> = {
  model: "model",
  key: "key_id",
  environment: "environment",
  app: "coalesce(app_id, '')",
  account: "account_id",
  person: "coalesce((SELECT person_id FROM api_keys WHERE id = key_id), '')",
  organization: "coalesce((SELECT organization_id FROM accounts WHERE id = account_id), '')",
  upstream: "coalesce(upstream, '')",
  deployment: "CASE WHEN upstream IS NULL THEN '' ELSE upstream || '/' || model END",
  outcome: "outcome",
};
const generationMs = "CASE WHEN duration_ms > first_token_ms THEN duration_ms - first_token_ms ELSE 0 END";

/** The SQL of each sum. The results must equal the sums that `UsageSums` computes for the roll-ups. */
const sums = {
  requests: "count(*)",
  promptTokens: "sum(prompt_tokens)",
  cachedTokens: "sum(cached_tokens)",
  cacheWriteTokens: "sum(cache_write_tokens)",
  completionTokens: "sum(completion_tokens)",
  reasoningTokens: "sum(reasoning_tokens)",
  nanoUsd: "sum(coalesce(nano_usd, 0))",
  unpriced: "sum(CASE WHEN nano_usd IS NULL THEN 1 ELSE 0 END)",
  errors: "sum(CASE WHEN outcome = 'failed' THEN 1 ELSE 0 END)",
  timed: "count(first_token_ms)",
  firstTokenMs: "coalesce(sum(first_token_ms), 0)",
  generatedTokens:
    "sum(CASE WHEN duration_ms > first_token_ms AND completion_tokens > 1 THEN completion_tokens - 1 ELSE 0 END)",
  generationMs: `sum(CASE WHEN first_token_ms IS NULL THEN 0 ELSE ${generationMs} END)`,
} as const;
type SumName = keyof typeof sums;
const sumNames = Object.keys(sums) as SumName[];

/** The SQL that counts answers by their time. The results must equal the counts of `totalsOf`. */
const counts = [...timeBounds, undefined].flatMap((bound, step) => {
  const within = (column: string) =>
    `${column} > ${timeBounds[step - 1] ?? -1}${bound === undefined ? "" : ` AND ${column} <= ${bound}`}`;
  return [
    `sum(CASE WHEN ${within("first_token_ms")} THEN 1 ELSE 0 END) AS first_${step}`,
    `sum(CASE WHEN outcome = 'completed' AND ${within("duration_ms")} THEN 1 ELSE 0 END) AS total_${step}`,
  ];
});

type Row = Record<string, string | number>;

/** Returns a page of rows, in the order of `SqlUsageReports`. Throws `invalid_request` if the period has too many requests. */
export async function reportOfRecords(
  db: Database,
  query: UsageQuery,
  { after, limit }: { after: UsagePosition | undefined; limit: number },
): Promise<UsageRow[]> {
  const rows = new Map<string, UsageRow>();
  let { end: until } = query;
  for (let queries = 0; until > query.start; queries++) {
    if (queries > 0) await new Promise(setImmediate);
    if (queries === maxQueries || rows.size > maxRows) {
      throw invalidRequest("start: the period has too many requests to add up by these groups; choose a shorter one.");
    }
    const from = await sliceStart(db, query.start, until);
    for (const row of await read(db, query, from, until)) add(rows, query, row);
    until = from;
  }
  const valuesOf = ({ start, groups }: UsagePosition) => [start, ...query.groupBy.map((group) => groups[group] ?? "")];
  const ordered = [...rows.values()]
    .map((row) => ({ row, values: valuesOf(row) }))
    .sort((one, other) => compared(one.values, other.values));
  const before = after && valuesOf(after);
  const first = before ? ordered.findIndex(({ values }) => compared(values, before) > 0) : 0;
  return first < 0 ? [] : ordered.slice(first, first + limit).map(({ row }) => row);
}

/** Returns the time from which to read the requests up to `until`; at least one whole second earlier. */
async function sliceStart(db: Database, start: number, until: number): Promise<number> {
  const [row]: { at: number | string }[] = await available(db`
    SELECT at FROM usage_records WHERE at >= ${start} AND at < ${until} ORDER BY at DESC LIMIT 1 OFFSET ${rowsAtOnce}`);
  return Math.min(Math.max(start, Number(row?.at ?? 0)), until - 1);
}

function read(db: Database, query: UsageQuery, from: number, until: number): Promise<Row[]> {
  const {
    accountId,
    organizationId,
    environment,
    keyId,
    appId,
    personId,
    model,
    tag,
    upstream,
    outcome,
    bucket,
    groupBy,
  } = query;
  const seconds = { minute: 60, hour: 3_600, day: 86_400, month: 86_400 }[bucket];
  const groups = ["bucket_start", ...groupBy.map((_, i) => `group_${i}`)];
  const columns = [
    `at - at % ${seconds} AS bucket_start`,
    ...groupBy.map((group, i) => `${expressions[group] ?? "''"} AS group_${i}`),
    ...sumNames.map((name) => `${sums[name]} AS "${name}"`),
    ...counts,
  ];
  return available(db`
    SELECT ${db.unsafe(columns.join(", "))} FROM usage_records
    WHERE at >= ${from} AND at < ${until} AND environment = ${environment}
      ${accountId === null ? db`` : db`AND account_id = ${accountId}`}
      ${organizationId === undefined ? db`` : db`AND account_id IN ${accountsOf(db, organizationId)}`}
      ${keyId === undefined ? db`` : db`AND key_id = ${keyId}`}
      ${appId === undefined ? db`` : db`AND app_id = ${appId}`}
      ${personId === undefined ? db`` : db`AND key_id IN ${credentialsOf(db, { accountId, environment, personId })}`}
      ${model === undefined ? db`` : db`AND model = ${model}`}
      ${tag === undefined ? db`` : db`AND replace(tags, ${tagInText(tag)}, '') <> tags`}
      ${upstream === undefined ? db`` : db`AND upstream = ${upstream}`}
      ${outcome === undefined ? db`` : db`AND outcome = ${outcome}`}
    GROUP BY ${db.unsafe(groups.join(", "))}`);
}

function add(rows: Map<string, UsageRow>, { bucket, groupBy }: UsageQuery, row: Row): void {
  const start = bucketStart(bucket, Number(row["bucket_start"]));
  const values = groupBy.map((_, i) => String(row[`group_${i}`]));
  const name = JSON.stringify([start, ...values]);
  const known = rows.get(name);
  const added: UsageRow = known ?? {
    ...{ start, end: bucketEnd(bucket, start), exactNanoUsd: 0n },
    groups: Object.fromEntries(groupBy.map((group, i) => [group, values[i] || null])),
    ...(Object.fromEntries(sumNames.map((sum) => [sum, 0])) as Record<SumName, number>),
  };
  for (const sum of sumNames) added[sum] += Number(row[sum]);
  added.exactNanoUsd += BigInt(row["nanoUsd"] ?? 0);
  added.times = addCounts(added.times, timesOf(row));
  if (!known) rows.set(name, added);
}

function timesOf(row: Row): TimeCounts {
  return countsOf(
    (step) => Number(row[`first_${step}`]),
    (step) => Number(row[`total_${step}`]),
  );
}

function compared(one: readonly (string | number)[], other: readonly (string | number)[]): number {
  for (const [i, value] of one.entries()) {
    const against = other[i] ?? "";
    if (value !== against) return value < against ? -1 : 1;
  }
  return 0;
}
