// The page Overview: how the account does, now and over time, or, before its first request, how to make one.
import { Group, SegmentedControl, SimpleGrid, Stack, Switch, Text } from "@mantine/core";
import { useState } from "react";
import { useNames } from "../../api/names.ts";
import { useRefusals } from "../../api/refusals.ts";
import type { UsageGroup } from "../../api/usage.ts";
import { oneOf, useAddress } from "../../parts/address.ts";
import { Failure } from "../../parts/failure.tsx";
import { Page } from "../../parts/page.tsx";
import { Charts, WaitingCharts } from "./charts.tsx";
import { FirstSteps } from "./first-steps.tsx";
import { LimitsCard } from "./limits-card.tsx";
import { rangeNames, ranges, useEverUsed, useOverview, useOverviewGroups } from "./overview-data.ts";
import { RecentErrors } from "./recent-errors.tsx";
import { Throttled } from "./throttled.tsx";
import { Tiles, WaitingTiles } from "./tiles.tsx";

const defaults = { range: "24h", by: "model", live: "on" };
const bys = ["model", "key", "app", "all"] as const;
const liveMs = 5_000;

export function OverviewPage() {
  const [said, change] = useAddress(defaults);
  const range = oneOf(rangeNames, said.range);
  const by = oneOf(bys, said.by);
  const isLive = said.live !== "off";
  const everyMs = isLive ? liveMs : undefined;
  const overview = useOverview(range, everyMs ?? false);
  // Asked for at the same time, though shown only once it is known that there is something to show.
  useOverviewGroups(range, by === "all" ? undefined : by, false);
  const isQuiet = overview.data?.sum.requests === 0 && overview.data.before.requests === 0;
  const ever = useEverUsed(isQuiet, false);
  // Once they were begun they stay until the reader has seen the first call come in.
  const [hasBegun, setHasBegun] = useState(false);
  const isNew = isQuiet && ever.data?.requests === 0;
  if (isNew && !hasBegun) setHasBegun(true);
  if (hasBegun) return <FirstSteps done={() => setHasBegun(false)} />;
  const { title } = ranges[range];
  return (
    <Page
      title="Overview"
      about="Requests, tokens and spend of the account, how fast answers come, and what limits hold back."
      actions={
        <Group gap="md">
          <Switch
            label="Live"
            checked={isLive}
            onChange={(event) => change({ live: event.currentTarget.checked ? "on" : "off" })}
          />
          <SegmentedControl
            aria-label="Time"
            value={range}
            onChange={(chosen) => change({ range: chosen })}
            data={rangeNames.map((name) => ({ value: name, label: ranges[name].title }))}
          />
        </Group>
      }
    >
      {overview.error && !overview.data ? (
        <Failure error={overview.error} retry={overview.refetch} />
      ) : !overview.data || (isQuiet && !ever.data && !ever.error) ? (
        <Waiting />
      ) : (
        <Content
          {...{ overview: overview.data, range, by, title, everyMs }}
          choose={(chosen) => change({ by: chosen })}
        />
      )}
    </Page>
  );
}

interface ContentProps {
  overview: NonNullable<ReturnType<typeof useOverview>["data"]>;
  range: (typeof rangeNames)[number];
  by: (typeof bys)[number];
  /** "24 hours". */
  title: string;
  everyMs: number | undefined;
  choose(by: string): void;
}

function Content({ overview, range, by, title, everyMs, choose }: ContentProps) {
  const group: UsageGroup | undefined = by === "all" ? undefined : by;
  const rows = useOverviewGroups(range, group, everyMs ?? false);
  const refusals = useRefusals(ranges[range].seconds / 86_400, everyMs);
  const names = useNames(true);
  const nameOf = (id: string) => (by === "key" ? names.key(id) : by === "app" ? names.app(id) : id);
  return (
    <Stack gap="md">
      <Tiles sum={overview.sum} before={overview.before} length={title} />
      <Group justify="space-between" gap="xs">
        <Group gap="xs">
          <Text size="sm" id="charts-by">
            Charts by
          </Text>
          <SegmentedControl
            size="xs"
            aria-labelledby="charts-by"
            value={by}
            onChange={choose}
            data={[
              { value: "model", label: "Model" },
              { value: "key", label: "Key" },
              { value: "app", label: "App" },
              { value: "all", label: "Together" },
            ]}
          />
        </Group>
      </Group>
      {rows.error && !rows.data ? (
        <Failure error={rows.error} retry={rows.refetch} />
      ) : (
        <Charts overview={overview} by={group} rows={rows.data} nameOf={nameOf} />
      )}
      <Throttled refusals={refusals.data?.data} error={refusals.error} names={names} />
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="sm">
        <LimitsCard everyMs={everyMs} />
        <RecentErrors names={names} everyMs={everyMs} />
      </SimpleGrid>
    </Stack>
  );
}

function Waiting() {
  return (
    <Stack gap="md">
      <WaitingTiles />
      <WaitingCharts />
    </Stack>
  );
}
