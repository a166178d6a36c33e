// The query in the explorer's address: the time span, bucket size, grouping and filters.
import type { Environment } from "../../api/client.ts";
import {
  bucketStart,
  operatorGroups,
  type UsageAsk,
  type UsageBucket,
  type UsageGroup,
  usageGroups,
} from "../../api/usage.ts";
import { oneOf } from "../../parts/page/address.ts";
import { type MetricName, metrics } from "../../parts/usage/usage-metrics.ts";

export const defaults = {
  ...{ range: "30d", from: "", to: "", bucket: "auto", group: "model", metric: "requests" },
  ...{ model: "", key: "", app: "", tag: "", rows: "groups", sort: "-requests" },
  // The filters of operators. `of` chooses one account or all accounts, and the other filters narrow this choice.
  ...{ of: "", account: "", organization: "", upstream: "", deployment: "", outcome: "" },
};
export type Said = Readonly<Record<keyof typeof defaults, string>>;

const day = 86_400;
export const rangeNames = ["24h", "7d", "30d", "month", "last-month", "90d", "12m", "custom"] as const;
export type RangeName = (typeof rangeNames)[number];
export const ranges: Readonly<Record<RangeName, { title: string; seconds: number }>> = {
  "24h": { title: "Last 24 hours", seconds: day },
  "7d": { title: "Last 7 days", seconds: 7 * day },
  "30d": { title: "Last 30 days", seconds: 30 * day },
  month: { title: "This month", seconds: 31 * day },
  "last-month": { title: "Last month", seconds: 31 * day },
  "90d": { title: "Last 90 days", seconds: 90 * day },
  "12m": { title: "Last 12 months", seconds: 365 * day },
  custom: { title: "Custom dates", seconds: 30 * day },
};

export const groupTitles: Readonly<Record<UsageGroup, string>> = {
  ...{ model: "Model", key: "Key", app: "App", tag: "Tag", environment: "Environment" },
  ...{ account: "Account", organization: "Organization", upstream: "Upstream" },
  ...{ deployment: "Deployment", outcome: "Outcome" },
};

export const bucketNames = ["auto", "hour", "day", "month"] as const;
/** The longest span with hourly buckets, in seconds: a chart of more hours would have more points than pixels. */
const maxHours = 93 * day;
const roughly: Readonly<Record<UsageBucket, number>> = { hour: 3_600, day, month: 31 * day };

export interface Asked extends UsageAsk {
  range: RangeName;
  /** The first and last day of the span, as YYYY-MM-DD in UTC. */
  days: { from: string; to: string };
  metric: MetricName;
  hoursFit: boolean;
  /** The fault of the dates, in words for the user; undefined if the dates are valid. */
  problem: string | undefined;
}

interface AskOptions {
  environments: readonly Environment[];
  /** True if the page shows all accounts. */
  isAll: boolean;
}

export function askOf(said: Said, nowSeconds: number, { environments, isAll }: AskOptions): Asked {
  const range = oneOf(rangeNames, said.range);
  const dates = range === "custom" ? datesOf(said, nowSeconds) : monthOf(range, nowSeconds);
  const length = dates?.seconds ?? ranges[range].seconds;
  const hoursFit = length <= maxHours;
  const wanted = oneOf(bucketNames, said.bucket);
  const fitting = length <= 3 * day ? "hour" : length <= 125 * day ? "day" : "month";
  const bucket = wanted === "auto" || (wanted === "hour" && !hoursFit) ? fitting : wanted;
  const start = dates?.start ?? bucketStart(bucket, nowSeconds - length + roughly[bucket]);
  const end = Math.min(dates?.end ?? nowSeconds + 1, nowSeconds + 1);
  const groups = said.group.split(",");
  const groupBy = (isAll ? operatorGroups : usageGroups).filter((group) => groups.includes(group));
  return {
    isAll,
    ...{ range, start, end, bucket, groupBy, hoursFit, problem: dates?.problem },
    days: {
      from: (range === "custom" && said.from) || dateText(start),
      to: (range === "custom" && said.to) || dateText(end - 1),
    },
    metric: (Object.keys(metrics) as MetricName[]).find((name) => name === said.metric) ?? "requests",
    ...{ model: said.model || undefined, key: said.key || undefined },
    ...{ app: said.app || undefined, tag: said.tag || undefined },
    ...{ account: said.account || undefined, organization: said.organization || undefined },
    ...{ upstream: said.upstream || undefined },
    ...{ deployment: said.deployment || undefined, outcome: said.outcome || undefined },
    ...(groupBy.includes("environment") ? { environments } : {}),
  };
}

export function groupText(groups: readonly UsageGroup[]): string {
  return groups.length === 0 ? "none" : groups.join(",");
}

/** Returns the span of a calendar month in UTC, as statements and limits count; undefined for the other ranges. */
function monthOf(range: RangeName, nowSeconds: number) {
  const first = bucketStart("month", nowSeconds);
  const last = bucketStart("month", first - 1);
  if (range === "month")
    return { start: first, end: nowSeconds + 1, seconds: nowSeconds + 1 - first, problem: undefined };
  if (range === "last-month") return { start: last, end: first, seconds: first - last, problem: undefined };
  return undefined;
}

/** Returns days in UTC, because buckets are in UTC. */
function datesOf({ from, to }: Said, nowSeconds: number) {
  const today = bucketStart("day", nowSeconds);
  const last = parsed(to) ?? today;
  const first = parsed(from) ?? last - 29 * day;
  const problem =
    first > last
      ? "The first day must not be after the last."
      : first > nowSeconds
        ? "The first day must not be in the future."
        : last - first > 3_650 * day
          ? "The range can be at most ten years."
          : undefined;
  if (problem !== undefined) return { start: today, end: nowSeconds + 1, seconds: day, problem };
  return { start: first, end: last + day, seconds: last + day - first, problem };
}

function parsed(text: string): number | undefined {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text)) return undefined;
  const ms = Date.parse(text);
  return Number.isNaN(ms) || ms < 0 ? undefined : ms / 1000;
}

export function dateText(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 10);
}
