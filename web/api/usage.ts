// Loads usage reports with all of their pages, several in parallel, up to the number of rows that the dashboard shows.

import { call, type Environment } from "./client.ts";
import { addUsd } from "./money.ts";
import { type Times, timesOf } from "./percentiles.ts";
import { nowSeconds } from "./server-time.ts";
import type { AllUsageReport, AllUsageRow, UsageReport } from "./types.ts";

/** A row of an account's report, or of the report over all accounts. */
export type UsageRow = AllUsageRow;

export type UsageBucket = "hour" | "day" | "month";
/** If usage is grouped by tag, a request with several tags counts in several rows. */
export const usageGroups = ["model", "key", "app", "tag", "environment"] as const;
/** Groups for the usage of all accounts, for operators. Tags are missing, because a tag belongs to one account. */
export const operatorGroups = [
  ...(["account", "organization", "model", "key", "app", "upstream", "deployment", "outcome", "environment"] as const),
];
export type UsageGroup = (typeof usageGroups)[number] | (typeof operatorGroups)[number];

/** The figures of one row, or the sums of several. */
export type Figures = Omit<UsageRow, "start" | "end" | "person" | UsageGroup>;

export interface UsageAsk {
  /** The time span in Unix seconds; `end` is not included. */
  start: number;
  end: number;
  bucket: UsageBucket;
  groupBy: readonly UsageGroup[];
  model?: string | undefined;
  key?: string | undefined;
  app?: string | undefined;
  tag?: string | undefined;
  /** True for the usage of all accounts. The filters below are only for that. */
  isAll?: boolean;
  account?: string | undefined;
  organization?: string | undefined;
  upstream?: string | undefined;
  deployment?: string | undefined;
  outcome?: string | undefined;
  /** The environments to query; by default the dashboard's current environment alone. */
  environments?: readonly Environment[] | undefined;
}

interface UsageResult {
  rows: UsageRow[];
  /** True if rows were left out. */
  cut: boolean;
}

interface AllUsageResult extends UsageResult {
  /** Names of accounts, organizations, keys and apps by id; empty unless all accounts were asked for. */
  names: Readonly<Record<string, string>>;
}

interface Bounds {
  signal?: AbortSignal | undefined;
  /** Maximum number of rows to load. */
  atMost?: number;
  /** Called with the number of rows loaded so far. */
  progress?: (rows: number) => void;
}

export const daySeconds = 86_400;
const pageRows = 1000;
/**
 * Maximum concurrent requests. The server runs one report at a time, so more would only wait in its queue, ahead of
 * other users' requests.
 */
const atOnce = 4;

/** Returns `ask` as the query parameters of the endpoint. */
export function usageQuery({ start, end, bucket, groupBy, model, key, app, tag, isAll = false, ...ask }: UsageAsk) {
  const { account, organization, upstream, deployment, outcome } = ask;
  return {
    ...{ start, end, bucket, group_by: groupBy, model, key, app },
    ...(isAll ? { account, organization, upstream, deployment, outcome } : { tag }),
  };
}

export function pathOfUsage({ isAll = false }: Pick<UsageAsk, "isAll">): string {
  return isAll ? "/v1/admin/usage" : "/v1/usage";
}

export async function loadUsage(
  ask: UsageAsk,
  { signal, atMost = 20_000, progress }: Bounds = {},
): Promise<AllUsageResult> {
  let count = 0;
  const names: Record<string, string> = {};
  const results: UsageResult[] = [];
  for (const environment of ask.environments ?? [undefined]) {
    const read = async (part: UsageAsk, cursor?: string) => {
      const page = await call<UsageReport & Partial<Pick<AllUsageReport, "names">>>("GET", pathOfUsage(ask), {
        query: { ...usageQuery(part), limit: pageRows, cursor },
        ...(environment === undefined ? {} : { headers: { "headrace-environment": environment } }),
        signal,
      });
      Object.assign(names, page.names);
      count += page.data.length;
      progress?.(count);
      return page;
    };
    results.push(await loadParts(ask, read, atMost / (ask.environments?.length ?? 1)));
  }
  return { rows: results.flatMap(({ rows }) => rows), cut: results.some(({ cut }) => cut), names };
}

type Read = (part: UsageAsk, cursor?: string) => Promise<{ data: UsageRow[]; next: string | null }>;

/** After the first page, splits the remaining time span and loads the parts in parallel. */
async function loadParts(ask: UsageAsk, read: Read, atMost: number): Promise<UsageResult> {
  const first = await read(ask);
  if (first.next === null) return { rows: first.data, cut: false };
  const from = first.data.at(-1)?.start ?? ask.start;
  const before = first.data.filter(({ start }) => start < from);
  const spans = spansOf(ask.bucket, from, ask.end);
  const each = Math.floor((atMost - before.length) / spans.length);
  const parts = await Promise.all(
    spans.map(async (span) => {
      const part = { ...ask, ...span };
      const rows: UsageRow[] = [];
      let cursor: string | undefined;
      do {
        const page = await read(part, cursor);
        rows.push(...page.data);
        cursor = page.next ?? undefined;
      } while (cursor !== undefined && rows.length < each);
      return { rows, cut: cursor !== undefined };
    }),
  );
  return { rows: [before, ...parts.map(({ rows }) => rows)].flat(), cut: parts.some(({ cut }) => cut) };
}

function spansOf(bucket: UsageBucket, start: number, end: number): { start: number; end: number }[] {
  const edges = bucketStarts(bucket, start, end);
  const size = Math.ceil(edges.length / atOnce);
  const spans: { start: number; end: number }[] = [];
  for (let at = 0; at < edges.length; at += size)
    spans.push({ start: edges[at] ?? start, end: edges[at + size] ?? end });
  return spans;
}

/** Returns the start of a bucket, in UTC as the server's buckets are. */
export function bucketStart(bucket: UsageBucket, seconds: number): number {
  if (bucket !== "month") return seconds - (seconds % (bucket === "hour" ? 3_600 : daySeconds));
  const date = new Date(seconds * 1000);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth()) / 1000;
}

export function bucketEnd(bucket: UsageBucket, start: number): number {
  if (bucket !== "month") return start + (bucket === "hour" ? 3_600 : daySeconds);
  const date = new Date(start * 1000);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1) / 1000;
}

/** Returns the starts of all buckets that overlap the span, including buckets without requests. */
export function bucketStarts(bucket: UsageBucket, start: number, end: number): number[] {
  const starts: number[] = [];
  for (let at = bucketStart(bucket, start); at < end; at = bucketEnd(bucket, at)) starts.push(at);
  return starts;
}

/** Returns the start of the first of `days` days that end today, in Unix seconds. */
export function firstDay(days: number): number {
  return bucketStart("day", Math.floor(nowSeconds())) - (days - 1) * daySeconds;
}

export const noFigures: Figures = {
  ...{ requests: 0, prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cost: 0, errors: 0 },
  ...{ cached_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0, unpriced_requests: 0 },
  ...{ first_token_ms: null, tokens_per_second: null, percentiles: null },
};

/** Merges the rows of several environments into one row per bucket. */
export function byBucket(rows: readonly UsageRow[]): UsageRow[] {
  return [...Map.groupBy(rows, ({ start }) => start).values()].flatMap((same) => {
    const [row] = same;
    if (!row) return [];
    return [same.length === 1 ? row : { ...row, ...sumOf(same) }];
  });
}

/**
 * Adds rows. Reports do not say how many answers a mean covers. So the mean time to first token is weighted by
 * successful requests, and the mean speed by tokens. Percentiles are exact to a step of the API's counts.
 */
export function sumOf(rows: Iterable<Figures>): Figures {
  const sum = { ...noFigures };
  const times: Times[] = [];
  let firstToken = 0;
  let timed = 0;
  let tokens = 0;
  let seconds = 0;
  for (const row of rows) {
    sum.requests += row.requests;
    sum.prompt_tokens += row.prompt_tokens;
    sum.completion_tokens += row.completion_tokens;
    sum.cached_tokens += row.cached_tokens;
    sum.cache_write_tokens += row.cache_write_tokens;
    sum.reasoning_tokens += row.reasoning_tokens;
    sum.total_tokens += row.total_tokens;
    sum.cost = addUsd(sum.cost, row.cost);
    sum.unpriced_requests += row.unpriced_requests;
    sum.errors += row.errors;
    times.push(row.percentiles);
    if (row.first_token_ms !== null) {
      const weight = Math.max(1, row.requests - row.errors);
      firstToken += row.first_token_ms * weight;
      timed += weight;
    }
    if (row.tokens_per_second) {
      const weight = Math.max(1, row.completion_tokens);
      tokens += weight;
      seconds += weight / row.tokens_per_second;
    }
  }
  if (timed > 0) sum.first_token_ms = firstToken / timed;
  if (seconds > 0) sum.tokens_per_second = tokens / seconds;
  sum.percentiles = timesOf(times);
  return sum;
}
