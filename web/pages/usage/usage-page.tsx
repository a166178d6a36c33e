// The page Usage: an explorer of usage by time, model, key, app, tag and environment.
import { Alert, Group, Paper, SegmentedControl, SimpleGrid, Stack, Text } from "@mantine/core";
import { useCallback, useMemo, useState } from "react";
import { costsNothing, type Unpriced, useUnpriced } from "../../api/models.ts";
import { useNames } from "../../api/names.ts";
import { nowSeconds } from "../../api/server-time.ts";
import { useSession } from "../../api/session.tsx";
import { sumOf, type UsageGroup } from "../../api/usage.ts";
import { nameOfTime } from "../../parts/chart/chart-time.ts";
import { TimeChart } from "../../parts/chart/time-chart.tsx";
import { Choice } from "../../parts/editing/choice.tsx";
import { AccountScope, useAllAccounts } from "../../parts/filters/account-scope.tsx";
import { SavedFilters } from "../../parts/filters/saved-filters.tsx";
import { useAddress } from "../../parts/page/address.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { Page } from "../../parts/page/page.tsx";
import { Waiting } from "../../parts/page/waiting.tsx";
import { percentileText } from "../../parts/usage/percentile-text.ts";
import { groupsOf, type Metric, type MetricName, metrics, seriesOf } from "../../parts/usage/usage-metrics.ts";
import { count, duration, money, percent, short } from "../../parts/words/figures.ts";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { type Asked, askOf, defaults, type Said } from "./usage-ask.ts";
import { type Explored, useExplored } from "./usage-data.ts";
import { UsageExport } from "./usage-export.tsx";
import { UsageFilters } from "./usage-filters.tsx";
import { UsageTable } from "./usage-table.tsx";

export function UsagePage() {
  const { environments } = useSession();
  const [said, change] = useAddress(defaults);
  const [opened] = useState(() => Math.floor(nowSeconds()));
  const isAll = useAllAccounts(said.of);
  const asked = askOf(said, opened, { environments, isAll });
  const { bucket, key, app } = said;
  const text = JSON.stringify({ ...said, metric: "", rows: "", sort: "", of: isAll });
  const { data, error, refetch, isPlaceholderData } = useExplored(
    text,
    (now) => askOf(said, now, { environments, isAll }),
    asked.problem === undefined,
  );
  const found = data?.names;
  const unpriced = useUnpriced();
  const names = useNames(asked.groupBy.some((one) => one === "key" || one === "app") || key !== "" || app !== "");
  const nameOf = useCallback(
    (of: UsageGroup, id: string | null) =>
      (id === null ? undefined : found?.[id]) ??
      (of === "key" ? names.key(id ?? "") : of === "app" ? names.app(id) : (id ?? emptyNames[of] ?? "")),
    [names, found],
  );
  return (
    <Page
      title="Usage"
      about={`Usage of ${isAll ? "all accounts, grouped as you choose" : "the account by model, key, app, tag and environment"}. You can share this page's URL.`}
      actions={
        <>
          <AccountScope
            isAll={isAll}
            choose={(of) => change({ ...defaults, of, group: of === "all" ? "account" : "model" })}
          />
          <SavedFilters path="/usage" />
          <UsageExport ask={asked.problem === undefined ? data?.ask : undefined} />
        </>
      }
    >
      <Stack gap="md">
        <UsageFilters {...{ asked, bucket, change }} keyName={names.key} appName={names.app} />
        {error && !data ? (
          <Failure error={error} retry={refetch} />
        ) : asked.problem !== undefined ? null : !data || !unpriced.isSettled ? (
          <Waiting heights={[80, 340, 200]} />
        ) : (
          <div className={isPlaceholderData ? "stale" : undefined} aria-busy={isPlaceholderData}>
            <Results {...{ data, unpriced, said, asked, change, nameOf }} />
          </div>
        )}
      </Stack>
    </Page>
  );
}

const emptyNames: Partial<Record<UsageGroup, string>> = {
  tag: "No tags",
  organization: "No organization",
  upstream: "No upstream",
  deployment: "No upstream",
};

interface ResultsProps {
  data: Explored;
  unpriced: Unpriced;
  said: Said;
  asked: Asked;
  change(changes: Partial<Record<keyof Said, string>>): void;
  nameOf(group: UsageGroup, id: string | null): string;
}

const metricNames = Object.keys(metrics) as MetricName[];

function Results({ data, unpriced, said, asked, change, nameOf }: ResultsProps) {
  const { ask, rows, totals, times, cut, now } = data;
  const { groupBy, bucket } = ask;
  const overlap = groupBy.includes("tag");
  const metric: Metric = metrics[asked.metric];
  const groups = useMemo(
    () => (groupBy.length === 0 ? [] : groupsOf(rows, groupBy, metric.kind === "stack" ? asked.metric : "requests")),
    [rows, groupBy, asked.metric, metric.kind],
  );
  const sum = useMemo(() => sumOf(totals), [totals]);
  const nameOfGroup = (id: string) =>
    id
      .split("\n")
      .map((value, at) => nameOf(groupBy[at] ?? "model", value === "" ? null : value))
      .join(" · ");
  const all = metric.of(sum);
  const byTime = said.rows === "times" || groupBy.length === 0;
  return (
    <Stack gap="md">
      <Totals
        sum={sum}
        unpriced={unpriced}
        mean={`${short(sum.requests / Math.max(1, times.length))} ${bucket === "hour" ? "an" : "a"} ${bucket} on average`}
      />
      {cut && (
        <Alert color="yellow" title="Too many rows for this page">
          {count(rows.length)} rows were loaded, but there are more. The totals above include all rows, but the groups
          below are incomplete. Choose a longer interval, a shorter time, fewer groups or a filter, or export all rows
          as CSV.
        </Alert>
      )}
      <Stack gap="xs">
        <Choice
          aria-label="Figure in the chart"
          size="xs"
          w={190}
          value={asked.metric}
          allowDeselect={false}
          data={metricNames.map((name) => ({ value: name, label: metrics[name].title }))}
          onChange={(chosen) => chosen && change({ metric: chosen })}
        />
        <TimeChart
          {...{
            title: metric.title,
            times,
            bucket,
            kind: overlap ? "line" : metric.kind,
            format: metric.format,
            whole: metric.whole,
          }}
          series={seriesOf({ times, totals, groups, nameOf: nameOfGroup, overlap }, asked.metric)}
          height={280}
          until={ask.end > now ? now : undefined}
          {...(all === null ? {} : { aside: metric.format(all) })}
          empty={sum.requests === 0 ? "No usage in this time." : "No data in this time."}
        />
      </Stack>
      <Group justify="space-between" gap="xs">
        <Note>
          {nameOfTime(ask.start, bucket === "hour" ? undefined : bucket)} to{" "}
          {nameOfTime(ask.end - 1, bucket === "hour" ? undefined : bucket)}
        </Note>
        {groupBy.length > 0 && (
          <SegmentedControl
            size="xs"
            aria-label="Rows of the table"
            value={byTime ? "times" : "groups"}
            data={[
              { value: "groups", label: "Total" },
              { value: "times", label: `By ${bucket}` },
            ]}
            onChange={(chosen) => change({ rows: chosen })}
          />
        )}
      </Group>
      {overlap && (
        <Note>
          A request with several tags appears in several rows, so the rows can add up to more than the totals above. The
          totals count each request once.
        </Note>
      )}
      <UsageTable
        {...{ rows, groupBy, bucket, byTime, unpriced, nameOf }}
        sort={said.sort}
        changeSort={(sort) => change({ sort })}
        choose={(group, id) => change({ [group]: id })}
      />
    </Stack>
  );
}

interface TotalsProps {
  sum: ReturnType<typeof sumOf>;
  mean: string;
  unpriced: Unpriced;
}

function Totals({ sum, mean, unpriced }: TotalsProps) {
  const { requests, prompt_tokens: prompt, completion_tokens: completion, errors } = sum;
  const cached = sum.cached_tokens === 0 ? "" : ` (${count(sum.cached_tokens)} cached)`;
  const shown: [string, string, string][] = [
    ["Requests", count(requests), mean],
    ["Tokens", count(sum.total_tokens), `${count(prompt)} prompt${cached}, ${count(completion)} completion`],
    spendOf(sum, unpriced),
    ["Errors", count(errors), requests === 0 ? "" : `${percent(errors / requests)} of requests`],
    ["First token, mean", meanText(sum.first_token_ms), percentileText(sum.percentiles?.first_token_ms) ?? ""],
    ["Whole answer, median", medianText(sum), percentileText(sum.percentiles?.total_ms) ?? ""],
  ];
  return (
    <SimpleGrid cols={{ base: 2, md: 3, xl: 6 }} spacing="xs">
      {shown.map(([title, value, note]) => (
        <Paper key={title} withBorder p="sm" component="section" aria-label={title}>
          <SmallNote>{title}</SmallNote>
          <Text fz={20} fw={650} className="numeric">
            {value}
          </Text>
          <SmallNote>{note || "–"}</SmallNote>
        </Paper>
      ))}
    </SimpleGrid>
  );
}

function meanText(ms: number | null): string {
  return ms === null ? "–" : duration(ms);
}

function medianText({ percentiles }: ReturnType<typeof sumOf>): string {
  return meanText(percentiles?.total_ms?.p50 ?? null);
}

const maxNames = 2;

/** Returns the title, figure and note; usage of models without a price is not included. */
function spendOf(sum: ReturnType<typeof sumOf>, { names, isAllThatIsFree }: Unpriced): [string, string, string] {
  const { requests, cost } = sum;
  if (requests === 0) return ["Spend", money(cost), ""];
  if (costsNothing(sum) && isAllThatIsFree) return ["Spend", "No price", "Unpriced requests"];
  const more = names.length > maxNames ? ` and ${count(names.length - maxNames)} more` : "";
  const each = `${money(cost / requests)} per request`;
  return [
    "Spend",
    money(cost),
    names.length === 0 ? each : `${each}; no price: ${names.slice(0, maxNames).join(", ")}${more}`,
  ];
}
