// Sums the rows of a usage report by time step and group, for the charts of the overview page.

import { z } from "zod";
import { usdOf } from "../../../base/money.ts";
import { addCounts } from "../../../domain/usage/time-counts.ts";
import type { UsageGroup, UsagePosition, UsageQuery, UsageReports, UsageSums } from "../../../domain/usage/usage.ts";
import { firstTokenMs, rounded, shownSpeed, speed } from "./speed-wire.ts";

const pageRows = 1_000;
/** Maximum rows that are read for the groups of a report. Further rows count only in the totals. */
const maxRows = 100_000;
/** One group more than a chart shows. So the remaining groups of a chart are never just "1 other". */
const ofOneChart = 8;

/** The time steps of a chart: start and length in seconds, and their number. */
export interface Steps {
  start: number;
  step: number;
  count: number;
}

export const figuresShape = z.object({
  requests: z.number(),
  total_tokens: z.number(),
  cost: z.number().describe("Cost in USD. Requests to models without a price are free."),
  errors: z.number().describe("Number of failed requests."),
  first_token_ms: firstTokenMs,
  tokens_per_second: speed,
});

/** The values of a chart, one for each step. */
export const seriesShape = z.object({
  requests: z.array(z.number()),
  total_tokens: z.array(z.number()),
  cost: z.array(z.number()),
  errors: z.array(z.number()),
  first_token_ms: z.array(z.number().nullable()),
  tokens_per_second: z.array(z.number().nullable()),
});

const charts = ["requests", "total_tokens", "cost", "errors", "first_token_ms", "tokens_per_second"] as const;
const ranks = z.array(z.int());
export const rankingShape = z.object({
  ...{ requests: ranks, total_tokens: ranks, cost: ranks, errors: ranks },
  ...{ first_token_ms: ranks, tokens_per_second: ranks },
});

/**
 * The value by which each chart ranks its groups. Charts of averages rank by the number of measured requests or tokens,
 * so that one short answer does not put a group first.
 */
const weights: Readonly<Record<(typeof charts)[number], (sums: UsageSums) => number>> = {
  requests: ({ requests }) => requests,
  total_tokens: ({ promptTokens, completionTokens }) => promptTokens + completionTokens,
  cost: ({ nanoUsd }) => nanoUsd,
  errors: ({ errors }) => errors,
  first_token_ms: ({ timed }) => timed,
  tokens_per_second: ({ generatedTokens }) => generatedTokens,
};

const nothing: Readonly<UsageSums> = {
  ...{ requests: 0, promptTokens: 0, completionTokens: 0, nanoUsd: 0, unpriced: 0, errors: 0 },
  ...{ cachedTokens: 0, cacheWriteTokens: 0, reasoningTokens: 0 },
  ...{ timed: 0, firstTokenMs: 0, generatedTokens: 0, generationMs: 0 },
};

/** Adds the fraction `part` of `more` to `sums`. */
function add(sums: UsageSums, more: UsageSums, part = 1): void {
  sums.requests += more.requests * part;
  sums.promptTokens += more.promptTokens * part;
  sums.cachedTokens += more.cachedTokens * part;
  sums.cacheWriteTokens += more.cacheWriteTokens * part;
  sums.completionTokens += more.completionTokens * part;
  sums.reasoningTokens += more.reasoningTokens * part;
  sums.nanoUsd += Math.round(more.nanoUsd * part);
  sums.unpriced += more.unpriced * part;
  sums.errors += more.errors * part;
  sums.timed += more.timed * part;
  sums.firstTokenMs += more.firstTokenMs * part;
  sums.generatedTokens += more.generatedTokens * part;
  sums.generationMs += more.generationMs * part;
  sums.times = addCounts(sums.times, more.times);
}

/**
 * Returns the sums of a period that ends at `until`. If `until` lies within a bucket, the bucket counts in proportion.
 */
export async function sumsUntil(reports: UsageReports, query: UsageQuery, until: number): Promise<UsageSums> {
  const sums = { ...nothing };
  for await (const row of rowsOf(reports, { ...query, groupBy: [] })) {
    add(sums, row, Math.min(1, Math.max(0, (until - row.start) / (row.end - row.start))));
  }
  return sums;
}

/** The sums of one group, or of all groups. */
class StepSums {
  readonly all: UsageSums = { ...nothing };
  readonly #steps: Steps;
  readonly #byStep: (UsageSums | undefined)[] = [];

  constructor(steps: Steps) {
    this.#steps = steps;
  }

  add(row: UsageSums & { start: number }): void {
    const at = Math.floor((row.start - this.#steps.start) / this.#steps.step);
    if (at < 0 || at >= this.#steps.count) return;
    const sums = this.#byStep[at] ?? { ...nothing };
    this.#byStep[at] = sums;
    add(sums, row);
    add(this.all, row);
  }

  toWire(): z.infer<typeof seriesShape> {
    const steps = Array.from({ length: this.#steps.count }, (_, at) => figuresToWire(this.#byStep[at] ?? nothing));
    return {
      requests: steps.map(({ requests }) => requests),
      total_tokens: steps.map((one) => one.total_tokens),
      cost: steps.map(({ cost }) => cost),
      errors: steps.map(({ errors }) => errors),
      first_token_ms: steps.map((one) => one.first_token_ms),
      tokens_per_second: steps.map((one) => one.tokens_per_second),
    };
  }
}

export async function stepSums(reports: UsageReports, query: UsageQuery, steps: Steps): Promise<StepSums> {
  const sums = new StepSums(steps);
  for await (const row of rowsOf(reports, { ...query, groupBy: [] })) sums.add(row);
  return sums;
}

export interface RankedGroups {
  /** The groups that at least one chart shows, sorted by their number of requests, the largest first. */
  groups: { id: string | null; sums: StepSums }[];
  /** For each chart, the positions of its groups in `groups`. */
  ranking: z.infer<typeof rankingShape>;
  /** The number of all groups, including those that are in no chart. */
  count: number;
}

export const noGroups: RankedGroups = {
  groups: [],
  ranking: { requests: [], total_tokens: [], cost: [], errors: [], first_token_ms: [], tokens_per_second: [] },
  count: 0,
};

export async function rankedGroups(
  reports: UsageReports,
  query: UsageQuery,
  by: UsageGroup,
  steps: Steps,
): Promise<RankedGroups> {
  const all = new Map<string | null, StepSums>();
  for await (const row of rowsOf(reports, { ...query, groupBy: [by] })) {
    const id = row.groups[by] ?? null;
    const sums = all.get(id) ?? new StepSums(steps);
    all.set(id, sums);
    sums.add(row);
  }
  const byRequests = [...all].sort(([, one], [, other]) => other.all.requests - one.all.requests);
  const first = charts.map((chart) => {
    const weigh = weights[chart];
    const weighty = byRequests.filter(([, { all: sums }]) => weigh(sums) > 0);
    const ranked = weighty.sort(([, one], [, other]) => weigh(other.all) - weigh(one.all));
    return [chart, ranked.slice(0, ofOneChart).map(([id]) => id)] as const;
  });
  const shown = new Set(first.flatMap(([, ids]) => ids));
  const groups = byRequests.filter(([id]) => shown.has(id)).map(([id, sums]) => ({ id, sums }));
  const indexes = new Map(groups.map(({ id }, at) => [id, at]));
  const ranking = Object.fromEntries(first.map(([chart, ids]) => [chart, ids.map((id) => indexes.get(id) ?? 0)]));
  return { groups, ranking: ranking as RankedGroups["ranking"], count: all.size };
}

export function figuresToWire(sums: UsageSums): z.infer<typeof figuresShape> {
  return {
    requests: sums.requests,
    total_tokens: sums.promptTokens + sums.completionTokens,
    cost: usdOf(sums.nanoUsd),
    errors: sums.errors,
    first_token_ms: sums.timed === 0 ? null : rounded(sums.firstTokenMs / sums.timed),
    tokens_per_second: shownSpeed(sums.generatedTokens, sums.generationMs),
  };
}

async function* rowsOf(reports: UsageReports, query: UsageQuery) {
  let after: UsagePosition | undefined;
  for (let read = 0; read < maxRows; read += pageRows) {
    const rows = await reports.report(query, { after, limit: pageRows });
    yield* rows;
    if (rows.length < pageRows) return;
    after = rows.at(-1);
  }
}
