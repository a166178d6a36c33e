// The page Overview: the account's figures now and over time, or first steps before the first request.
import { Group, NativeSelect, SegmentedControl, SimpleGrid, Stack, Switch, Text } from "@mantine/core";
import { useState } from "react";
import { credentialName } from "../../api/names.ts";
import { useSession } from "../../api/session.tsx";
import { AccountScope, useAllAccounts } from "../../parts/filters/account-scope.tsx";
import { oneOf, useAddress } from "../../parts/page/address.ts";
import { Failure } from "../../parts/page/failure.tsx";
import { useLater } from "../../parts/page/later.ts";
import { Page } from "../../parts/page/page.tsx";
import { Charts, WaitingCharts } from "./charts.tsx";
import { FailingUpstreams } from "./failing-upstreams.tsx";
import { LimitsCard } from "./limits-card.tsx";
import { type AnyOverview, groups, groupsOfAll, rangeNames, ranges, useOverview } from "./overview-data.ts";
import { RecentErrors } from "./recent-errors.tsx";
import { Throttled } from "./throttled.tsx";
import { ResponseTimes, Tiles, WaitingTiles } from "./tiles.tsx";

const defaults = { range: "24h", by: "model", live: "on", of: "" };
const bys = [...groups, "all"] as const;
const bysOfAll = [...groupsOfAll, "all"] as const;
const titles: Readonly<Record<(typeof bys)[number] | (typeof bysOfAll)[number], string>> = {
  ...{ account: "Account", model: "Model", key: "Key", app: "App" },
  ...{ upstream: "Upstream", deployment: "Deployment", outcome: "Outcome", all: "Total" },
};
const liveMs = 5_000;
/** Loaded lazily, because nobody sees the first steps after the first request. */
const loadFirstSteps = async () => (await import("./first-steps.tsx")).FirstSteps;

export function OverviewPage() {
  const { isOperator } = useSession();
  const [said, change] = useAddress(defaults);
  const range = oneOf(rangeNames, said.range);
  const isAll = useAllAccounts(said.of);
  const by = isAll ? oneOf(bysOfAll, said.by) : oneOf(bys, said.by);
  const isLive = said.live !== "off";
  const { data, error, refetch } = useOverview(
    isAll,
    range,
    by === "all" ? undefined : by,
    isLive ? liveMs : undefined,
  );
  // The first steps stay on screen until the reader has seen the first request arrive.
  const [steps, setSteps] = useState<"begun" | "done">();
  if (data?.usage.is_new && steps === undefined) setSteps("begun");
  const { part: FirstSteps, failure } = useLater(steps === "begun" ? loadFirstSteps : undefined);
  if (failure) throw failure.error;
  if (FirstSteps && steps === "begun") {
    const done = () => {
      setSteps("done");
      void refetch();
    };
    return <FirstSteps done={done} />;
  }
  return (
    <Page
      title="Overview"
      about={`Requests, tokens, spend, speed and rate-limited requests of ${isAll ? "all accounts" : "the account"}.`}
      actions={
        <Group gap="md">
          <AccountScope isAll={isAll} choose={(of) => change({ of, by: of === "all" ? "account" : "model" })} />
          <Switch
            label="Auto-refresh"
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
      {isOperator && <FailingUpstreams />}
      {data && steps !== "begun" ? (
        <Content {...{ overview: data, isAll, by }} choose={(chosen) => change({ by: chosen })} />
      ) : error ? (
        <Failure error={error} retry={refetch} />
      ) : (
        <Waiting />
      )}
    </Page>
  );
}

interface ContentProps {
  overview: AnyOverview;
  isAll: boolean;
  by: keyof typeof titles;
  choose(by: string): void;
}

function Content({ overview, isAll, by, choose }: ContentProps) {
  const { usage, names, throttled, errors, account, range, group_by } = overview;
  const nameOf = (id: string) => credentialName(names, id);
  return (
    <Stack gap="md">
      <Tiles sum={usage.sum} before={usage.before} length={ranges[range].title} />
      <ResponseTimes times={usage.sum.percentiles} />
      <Group gap="xs">
        <Text size="sm" id="charts-by">
          Charts by
        </Text>
        {isAll ? (
          // A phone is too narrow for so many groups beside each other.
          <NativeSelect
            size="xs"
            aria-labelledby="charts-by"
            value={by}
            onChange={(event) => choose(event.currentTarget.value)}
            data={bysOfAll.map((value) => ({ value, label: titles[value] }))}
          />
        ) : (
          <SegmentedControl
            size="xs"
            aria-labelledby="charts-by"
            value={by}
            onChange={choose}
            data={bys.map((value) => ({ value, label: titles[value] }))}
          />
        )}
      </Group>
      <Charts {...{ usage, names }} by={group_by ?? "all"} bucket={ranges[range].bucket} />
      <Throttled throttled={throttled} nameOf={nameOf} />
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="sm">
        {account && <LimitsCard account={account} />}
        <RecentErrors {...{ errors, isAll, nameOf }} />
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
